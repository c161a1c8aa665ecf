#pragma once
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/policy/policy.h"

namespace dhc {

/// That nothing is evicted, credited or newly tainted: at all, or in a part of the cluster.
struct Pause {
  std::string why;                ///< For people; no countdown.
  std::optional<WallTime> until;  ///< None: until somebody ends it.
  friend bool operator==(const Pause&, const Pause&) = default;
};

/// The pause that holds at `now`: `paused: true`, or the annotation `pause-until` on the configuration's ConfigMap
/// while that time is ahead. A value that is no time pauses as well: whoever wrote it wants everything stopped, and a
/// mistyped time must not start it again. Of everything; those of parts: domain/findings/pauses.h.
[[nodiscard]] std::optional<Pause> pause_of(const Policy& policy, WallTime now);

/// A pause of a part as it is said: until when, what, by whom and why.
[[nodiscard]] Pause words_of(const ScopedPause& pause);

/// Whether `a` ends after `b`.
[[nodiscard]] bool ends_later(const Pause& a, const Pause& b);

/// The moment at which it ends, by our monotonic clock; none: not by time.
[[nodiscard]] std::optional<MonoTime> end_of(const Pause& pause, const Now& now);

}  // namespace dhc
