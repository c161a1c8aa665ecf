#include "k8s-client/model/proto_reading.h"

#include <chrono>
#include <map>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>
#include <simdjson.h>

namespace dhc::k8s::proto {

namespace {

using WireType = protozero::pbf_wire_type;

// 0000-01-01 to 9999-12-31: all that RFC 3339 can say.
constexpr std::int64_t kFirstSecond = -62'167'219'200;
constexpr std::int64_t kLastSecond = 253'402'300'799;

/// The bytes of the character that `text` begins with; 0 if they are no UTF-8.
std::size_t character_size(std::string_view text) {
  for (std::size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (simdjson::validate_utf8(text.substr(0, size))) return size;
  }
  return 0;
}

// What is repaired may stand elsewhere, and twice.
template <class Item>
void sort_anew(std::vector<Item>& items, SharedText Item::* key) {
  std::map<SharedText, Item> sorted;
  for (auto& item : items) {
    auto name = item.*key;
    sorted.insert_or_assign(std::move(name), std::move(item));
  }
  items.clear();
  for (auto& [name, item] : sorted) items.push_back(std::move(item));
}

}  // namespace

Fields::Step Fields::next(std::uint32_t& tag, Value& value) noexcept {
  try {
    if (!reader_.next()) return Step::End;
    tag = reader_.tag();
    value = Value{.type = reader_.wire_type(), .number = 0, .bytes = {}};
    if (value.type == WireType::varint) {
      value.number = reader_.get_uint64();
    } else if (value.type == WireType::length_delimited) {
      const auto view = reader_.get_view();
      value.bytes = {view.data(), view.size()};
    } else {
      reader_.skip();
    }
    return Step::Next;
  } catch (const protozero::exception&) {
    return Step::Broken;
  }
}

bool read_view(const Value& value, Fault& fault, std::string_view& out) {
  if (value.type != WireType::length_delimited) return fault.is("not text and not a message");
  out = value.bytes;
  return true;
}

bool repair_text(std::string& text) {
  if (simdjson::validate_utf8(text)) return false;
  std::string repaired;
  for (std::string_view rest = text; !rest.empty();) {
    const auto size = character_size(rest);
    repaired += size == 0 ? std::string_view("\xEF\xBF\xBD") : rest.substr(0, size);
    rest.remove_prefix(size == 0 ? 1 : size);
  }
  text = std::move(repaired);
  return true;
}

bool repair_text(SharedText& text) {
  if (simdjson::validate_utf8(text.view())) return false;
  std::string repaired = text;
  repair_text(repaired);
  text = repaired;
  return true;
}

bool read_part(const Value& value, Fault& fault, std::string& joined, std::string_view& whole) {
  std::string_view part;
  if (!read_view(value, fault, part)) return false;
  if (whole.empty()) {
    whole = part;
    return true;
  }
  if (joined.empty()) joined = whole;
  whole = joined.append(part);
  return true;
}

bool read_text(const Value& value, Fault& fault, std::string& out) {
  std::string_view text;
  if (!read_view(value, fault, text)) return false;
  out = std::string(text);
  repair_text(out);
  return true;
}

bool read_message(const Value& value, Fault& fault, std::string& out) {
  std::string text;
  if (!read_text(value, fault, text)) return false;
  out = std::string(cut_message(text));
  return true;
}

bool read_name(const Value& value, Fault& fault, std::string& out) {
  return read_text(value, fault, out) && (is_clean_name(out) || fault.is("control character or too long"));
}

bool read_text(const Value& value, Fault& fault, SharedText& out) {
  std::string_view text;
  if (!read_view(value, fault, text)) return false;
  out = text;
  repair_text(out);
  return true;
}

bool read_message(const Value& value, Fault& fault, SharedText& out) {
  SharedText text;
  if (!read_text(value, fault, text)) return false;
  const auto cut = cut_message(text);
  out = cut.size() == text.size() ? std::move(text) : SharedText(cut);
  return true;
}

bool read_name(const Value& value, Fault& fault, SharedText& out) {
  return read_text(value, fault, out) && (is_clean_name(out) || fault.is("control character or too long"));
}

bool read_one_name(const Value& value, Fault& fault, std::vector<std::string>& out) {
  return read_item(value, fault, out, [](auto& item, auto& why, auto& name) { return read_name(item, why, name); });
}

bool read_number(const Value& value, Fault& fault, std::int64_t& out) {
  if (value.type != WireType::varint) return fault.is("not a whole number");
  out = static_cast<std::int64_t>(value.number);
  return true;
}

bool read_integer(const Value& value, Fault& fault, std::optional<std::int64_t>& out) {
  std::int64_t number = 0;
  if (!read_number(value, fault, number)) return false;
  out = number;
  return true;
}

bool read_packed(std::string_view bytes, std::vector<std::int64_t>& out) {
  try {
    for (const auto* at = bytes.data(); at != bytes.data() + bytes.size();) {
      out.push_back(static_cast<std::int64_t>(protozero::decode_varint(&at, bytes.data() + bytes.size())));
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

bool read_bool(const Value& value, Fault& fault, bool& out) {
  if (value.type != WireType::varint) return fault.is("not true or false");
  out = value.number != 0;
  return true;
}

bool read_time(const Value& value, Fault& fault, std::optional<WallTime>& out) {
  out.reset();
  std::int64_t seconds = 0;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_number(field, fault, seconds) || fault.in("seconds");
  });
  if (!read) return false;
  if (value.bytes.empty()) return true;
  if (seconds < kFirstSecond || seconds > kLastSecond) return fault.is("not a time in the years 0 to 9999");
  out = WallTime(std::chrono::seconds(seconds));
  return true;
}

bool read_map_entry(const Value& value, Fault& fault, std::string_view& key, Value& held) {
  key = {};
  held = Value{.type = WireType::length_delimited, .number = 0, .bytes = {}};
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_view(field, fault, key);
    if (tag == 2) held = field;
    return true;
  });
}

StringMap to_map(std::vector<MapEntry<std::string_view>>& entries) {
  auto map = settled(entries);
  bool repaired = false;
  for (auto& [key, text] : map) {
    repaired = repair_text(key) || repaired;
    repair_text(text);
  }
  if (repaired) sort_anew(map, &StringMap::value_type::first);
  return StringMap(std::move(map));
}

std::vector<ResourceAmount> to_map(std::vector<MapEntry<std::int64_t>>& entries) {
  auto amounts = settled(entries);
  bool repaired = false;
  for (auto& amount : amounts) repaired = repair_text(amount.resource) || repaired;
  if (repaired) sort_anew(amounts, &ResourceAmount::resource);
  return amounts;
}

bool read_integer(const Value& value, Fault& fault, SharedOptional<std::int64_t>& out) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  out = number;
  return true;
}

bool read_time(const Value& value, Fault& fault, SharedOptional<WallTime>& out) {
  std::optional<WallTime> time;
  if (!read_time(value, fault, time)) return false;
  out = time;
  return true;
}

}  // namespace dhc::k8s::proto
