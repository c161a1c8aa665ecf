#pragma once
#include <expected>
#include <string>
#include <string_view>

#include "base/now.h"

namespace dhc {

/// The time that an operator wrote into an annotation: he has looked at all that began up to then. Refused, in words,
/// if it is none, or ahead of the clock: nobody vouches for what is still to come, and a mistyped year would switch off
/// a safety for good.
[[nodiscard]] std::expected<WallTime, std::string> operator_time(std::string_view text, WallTime now);
/// The same of a time that has been read.
[[nodiscard]] std::expected<WallTime, std::string> operator_time(WallTime at, WallTime now);

}  // namespace dhc
