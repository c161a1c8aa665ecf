#pragma once
#include <span>
#include <string_view>

namespace dhc {

/// The word of `known` that a typing mistake may have turned into `word` (at most a third of it is wrong, swapped
/// letters are one mistake, case does not count); empty if none is near.
[[nodiscard]] std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace dhc
