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
template <class Text>
bool read_any_text(JsonValue value, Fault& fault, Text& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  out = Text(text.value_or(""));
  return true;
}

template <class Text>
bool read_cut_message(JsonValue value, Fault& fault, Text& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  out = Text(cut_message(text.value_or("")));
  return true;
}

template <class Text>
bool read_clean_name(JsonValue value, Fault& fault, Text& out) {
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  if (!is_clean_name(text.value_or(""))) return fault.is("control character or too long");
  out = Text(text.value_or(""));
  return true;
}

bool read_text(JsonValue value, Fault& fault, std::string& out) { return read_any_text(value, fault, out); }
bool read_text(JsonValue value, Fault& fault, SharedText& out) { return read_any_text(value, fault, out); }
bool read_message(JsonValue value, Fault& fault, std::string& out) { return read_cut_message(value, fault, out); }
bool read_message(JsonValue value, Fault& fault, SharedText& out) { return read_cut_message(value, fault, out); }
bool read_name(JsonValue value, Fault& fault, std::string& out) { return read_clean_name(value, fault, out); }
bool read_name(JsonValue value, Fault& fault, SharedText& out) { return read_clean_name(value, fault, out); }

bool read_names(JsonValue value, Fault& fault, std::vector<std::string>& out) {
  return read_list(value, fault, out, [](auto item, auto& why, auto& name) { return read_name(item, why, name); });
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

bool read_integer(JsonValue value, Fault& fault, SharedOptional<std::int64_t>& out) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  out = number;
  return true;
}

bool read_time(JsonValue value, Fault& fault, SharedOptional<WallTime>& out) {
  std::optional<WallTime> time;
  if (!read_time(value, fault, time)) return false;
  out = time;
  return true;
}

}  // namespace dhc::k8s
