#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/now.h"
#include "base/rfc3339.h"

namespace dhc {

// Members that are left out while they say nothing: a reader takes an absent one for empty, false or zero.

inline void put(nlohmann::ordered_json& json, std::string_view key, std::string_view value) {
  if (!value.empty()) json[key] = value;
}

/// In RFC 3339.
inline void put(nlohmann::ordered_json& json, std::string_view key, const std::optional<WallTime>& value) {
  if (value) json[key] = format_rfc3339(*value);
}

/// A flag or a count, and no pointer that would be taken for a flag.
template <class Value>
  requires std::same_as<Value, bool> || std::same_as<Value, std::size_t>
void put(nlohmann::ordered_json& json, std::string_view key, Value value) {
  if (value != Value()) json[key] = value;
}

}  // namespace dhc
