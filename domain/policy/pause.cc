#include "domain/policy/pause.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {
constexpr std::size_t kLongestReason = 200;
/// Whoever waits for longer looks again.
constexpr Millis kLongestPause = std::chrono::hours(24 * 366);
}  // namespace

std::optional<Pause> pause_of(const Policy& policy, WallTime now) {
  if (policy.limits.paused) return Pause{.why = "ControllerLimits has paused: true", .until = {}};
  if (policy.pause_until.empty()) return std::nullopt;
  const auto until = parse_rfc3339(policy.pause_until);
  if (!until) {
    return Pause{.why = fmt::format("the annotation {} of the configuration, \"{}\", is not an RFC 3339 time: paused "
                                    "until it is corrected or removed",
                                    kPauseUntilAnnotation, printable_cut(policy.pause_until, kLongestReason)),
                 .until = {}};
  }
  if (*until <= now) return std::nullopt;
  const auto reason = printable_cut(policy.pause_reason, kLongestReason);
  return Pause{.why = fmt::format("paused until {}{}", format_rfc3339(*until), reason.empty() ? "" : ": " + reason),
               .until = until};
}

std::optional<MonoTime> end_of(const Pause& pause, const Now& now) {
  if (!pause.until) return std::nullopt;
  const auto left = std::min(*pause.until - now.wall, std::chrono::duration_cast<WallTime::duration>(kLongestPause));
  return now.mono + std::chrono::ceil<Millis>(left);
}

}  // namespace dhc
