#pragma once
#include <optional>
#include <string_view>

#include "base/now.h"

namespace dhc::k8s {

/// The longest wait that a server may ask of us.
inline constexpr Millis kMaxRetryAfter = std::chrono::minutes(5);

/// The wait that a Retry-After header asks for, between 0 and `kMaxRetryAfter`. `date` is the same response's Date
/// header, against which an HTTP date is measured, so that no clock of ours is needed. Nothing if the value cannot be
/// read (negative, garbage, a date without a Date) and the caller's own back-off has to do.
/// **Source:** RFC 9110 10.2.3; kube-apiserver sends seconds.
[[nodiscard]] std::optional<Millis> parse_retry_after(std::string_view value, std::optional<std::string_view> date);

/// A date as HTTP writes it today, `Sun, 06 Nov 1994 08:49:37 GMT`; the two obsolete forms are not read.
/// **Source:** RFC 9110 5.6.7 IMF-fixdate.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace dhc::k8s
