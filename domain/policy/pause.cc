#include "domain/policy/pause.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/policy/config_text.h"

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

Pause words_of(const ScopedPause& pause) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) parts.push_back(fmt::format("{} {}", what, fmt::join(names, ", ")));
  };
  add("node", pause.nodes);
  if (!pause.node_labels.requirements.empty()) parts.push_back("nodes with " + selector_text(pause.node_labels));
  add("driver", pause.drivers);
  add("resource", pause.resources);
  add("namespace", pause.namespaces);
  return {.why = fmt::format("paused until {} for {}{}{}: {}", format_rfc3339(pause.until), fmt::join(parts, "; "),
                             pause.by.empty() ? "" : ", by ", pause.by, pause.reason),
          .until = pause.until};
}

bool ends_later(const Pause& a, const Pause& b) { return b.until && (!a.until || *a.until > *b.until); }

std::optional<MonoTime> end_of(const Pause& pause, const Now& now) {
  if (!pause.until) return std::nullopt;
  const auto left = std::min(*pause.until - now.wall, std::chrono::duration_cast<WallTime::duration>(kLongestPause));
  return now.mono + std::chrono::ceil<Millis>(left);
}

}  // namespace dhc
