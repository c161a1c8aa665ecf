#pragma once
#include <expected>
#include <string>
#include <string_view>

#include "base/now.h"

namespace dhc {

/// A duration as Go writes it, of whole hours, minutes, seconds and milliseconds in that order: `1h30m`, `90s`,
/// `500ms`, `0s`. Refused with the reason in words: fractions, signs, days, finer units, more than 30 days.
[[nodiscard]] std::expected<Millis, std::string> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back: `1h30m`, `0s`.
[[nodiscard]] std::string format_duration(Millis duration);

}  // namespace dhc
