#pragma once
#include <span>
#include <string>
#include <string_view>

namespace dhc::cli {

/// The word of `known` that a typing mistake may have turned into `word` (at most a third of it is wrong); empty if
/// none is near.
[[nodiscard]] std::string nearest_word(std::string_view word, std::span<const std::string> known);

}  // namespace dhc::cli
