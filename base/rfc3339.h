#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/now.h"

namespace dhc {

/// The time that `text` names, such as `2026-11-20T18:23:16Z` or `2026-11-20T18:23:16.123456+01:00`; nothing if it is
/// not exactly that or names a day or second that does not exist. Digits below a microsecond are cut off.
/// **Source:** RFC 3339, of which Kubernetes writes the form with `T` and `Z`.
[[nodiscard]] std::optional<WallTime> parse_rfc3339(std::string_view text);

/// `2026-11-20T18:23:16Z`, rounded down to the second (metav1.Time). Years outside 0000 to 9999 are moved to the edge.
[[nodiscard]] std::string format_rfc3339(WallTime when);

/// `2026-11-20T18:23:16.000000Z`: exactly six digits, as Event.eventTime and Lease.renewTime ask for, or the server
/// answers 400. **Source:** metav1.MicroTime, seen on 1.37.1. Years as above.
[[nodiscard]] std::string format_micro_time(WallTime when);

}  // namespace dhc
