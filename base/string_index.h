#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/shared_text.h"

namespace dhc {

/// Of a string and of a view of it the same, so that looking up copies nothing.
struct StringHash {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

/// A hash map by strings, in which views are looked up as they are.
template <class V>
using StringIndex = std::unordered_map<SharedText, V, StringHash, std::equal_to<>>;

}  // namespace dhc
