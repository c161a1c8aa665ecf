#pragma once
#include <algorithm>
#include <string_view>

#include "base/digit.h"

namespace dhc {

/// 8-4-4-4-12 hexadecimal digits.
inline constexpr std::string_view kUuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// Whether the text begins with a UUID, whatever comes after it.
[[nodiscard]] constexpr bool begins_with_uuid(std::string_view text) {
  return std::ranges::equal(kUuidShape, text.substr(0, kUuidShape.size()),
                            [](char shape, char c) { return shape == 'x' ? is_hex_digit(c) : shape == c; });
}

}  // namespace dhc
