#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "base/now.h"
#include "k8s-client/model/reading.h"

namespace dhc::k8s {

using JsonValue = simdjson::ondemand::value;
using JsonObject = simdjson::ondemand::object;

inline constexpr std::string_view kBroken = "broken JSON";

/// Whether the value is null, which counts as absent; false if it is broken.
inline bool read_null(JsonValue& value, Fault& fault, bool& null) {
  return value.is_null().get(null) ? fault.is("not a JSON value") : true;
}

/// Calls `on_field(key, value)` for each field. The key lives as long as the document. The callback returns false, with
/// the fault set, to stop.
template <class OnField>
bool each_field(JsonObject object, Fault& fault, OnField&& on_field) {
  for (auto entry : object) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || field.unescaped_key().get(key)) return fault.is(kBroken);
    if (!on_field(key, field.value())) return false;
  }
  return true;
}

/// The same for a value that should be an object; null has no fields.
template <class OnField>
bool each_field(JsonValue value, Fault& fault, OnField&& on_field) {
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  JsonObject object;
  if (value.get_object().get(object)) return fault.is("not an object");
  return each_field(object, fault, on_field);
}

/// Calls `on_item(value)` for each item of a list, of none if it is null; items that are null are skipped.
template <class OnItem>
bool each_item(JsonValue value, Fault& fault, OnItem&& on_item) {
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  simdjson::ondemand::array array;
  if (value.get_array().get(array)) return fault.is("not a list");
  std::size_t index = 0;
  for (auto entry : array) {
    JsonValue item;
    if (std::move(entry).get(item)) return fault.is(kBroken);
    bool absent = false;
    if (!read_null(item, fault, absent)) return fault.in(index);
    if (!absent && !on_item(item)) return fault.in(index);
    ++index;
  }
  return true;
}

/// A list of records: what was there is dropped (of duplicate keys the last counts), `read(value, fault, record)` fills
/// one.
template <class List, class Read>
bool read_list(JsonValue value, Fault& fault, List& out, Read&& read) {
  out.clear();
  return each_item(value, fault, [&](JsonValue item) { return read(item, fault, out.emplace_back()); });
}

/// Any text, not copied: the view lives as long as the document.
bool read_view(JsonValue value, Fault& fault, std::optional<std::string_view>& out);

/// Any text; null is empty.
bool read_text(JsonValue value, Fault& fault, std::string& out);
bool read_text(JsonValue value, Fault& fault, SharedText& out);

/// Text for people, cut to 1,024 characters. **Source:** KEP-4680, events/v1.
bool read_message(JsonValue value, Fault& fault, SharedText& out);
bool read_message(JsonValue value, Fault& fault, std::string& out);

/// A name, UID or version: no control characters, at most 1,024 bytes. It goes into keys, requests and logs.
bool read_name(JsonValue value, Fault& fault, std::string& out);
bool read_name(JsonValue value, Fault& fault, SharedText& out);

bool read_names(JsonValue value, Fault& fault, std::vector<std::string>& out);

/// A whole number that fits, never a float.
bool read_integer(JsonValue value, Fault& fault, std::optional<std::int64_t>& out);
bool read_integer(JsonValue value, Fault& fault, SharedOptional<std::int64_t>& out);

/// True or false; null is false.
bool read_bool(JsonValue value, Fault& fault, bool& out);

/// An RFC 3339 time.
bool read_time(JsonValue value, Fault& fault, std::optional<WallTime>& out);
bool read_time(JsonValue value, Fault& fault, SharedOptional<WallTime>& out);

}  // namespace dhc::k8s
