#include "k8s-client/model/json_reading.h"

#include "base/rfc3339.h"

namespace dhc::k8s {

bool read_view(JsonValue value, Fault& fault, std::optional<std::string_view>& out) {
  out.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  std::string_view text;
  const auto error = value.get_string().get(text);
  // A lone surrogate such as \ud800 is a string to look at, but none in UTF-8.
  if (error) return fault.is(error == simdjson::STRING_ERROR ? "not a valid string" : "not a string");
  out = text;
  return true;
}

// Each string is made anew: assigning to one that has room leaves up to twice the room needed.
bool read_text(JsonValue value, Fault& fault, std::string& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  out = std::string(text.value_or(""));
  return true;
}

bool read_message(JsonValue value, Fault& fault, std::string& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  out = std::string(cut_message(text.value_or("")));
  return true;
}

bool read_name(JsonValue value, Fault& fault, std::string& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  if (!is_clean_name(text.value_or(""))) return fault.is("control character or too long");
  out = std::string(text.value_or(""));
  return true;
}

bool read_integer(JsonValue value, Fault& fault, std::optional<std::int64_t>& out) {
  out.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  std::int64_t number = 0;
  if (value.get_int64().get(number)) return fault.is("not a whole number in range");
  out = number;
  return true;
}

bool read_bool(JsonValue value, Fault& fault, bool& out) {
  out = false;
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  return value.get_bool().get(out) ? fault.is("not true or false") : true;
}

bool read_time(JsonValue value, Fault& fault, std::optional<WallTime>& out) {
  out.reset();
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  if (!text) return true;
  out = parse_rfc3339(*text);
  return out ? true : fault.is("not an RFC 3339 time");
}

}  // namespace dhc::k8s
