#pragma once
#include <string>
#include <string_view>

#include "domain/findings/suspects.h"

namespace dhc {

/// The name of the suspects' section of the state; versions that do not know it keep it as it is.
inline constexpr std::string_view kSuspectSection = "suspects";
/// The most that it takes.
inline constexpr std::size_t kSuspectStateLimit = 64UL * 1024;

/// What of the suspects must survive a restart, as JSON of at most `limit` bytes: the oldest incidents go first. Empty:
/// there is nothing.
[[nodiscard]] std::string suspect_state_text(const Suspects& suspects, std::size_t limit = kSuspectStateLimit);

/// Reads what `suspect_state_text` made; what it did not make is left out.
[[nodiscard]] Suspects parse_suspect_state(std::string_view text);

}  // namespace dhc
