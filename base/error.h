#pragma once
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace dhc {

/// Why something failed, named by what the caller should do next.
enum class ErrorKind : std::uint8_t {
  NotFound,   ///< 404: for a delete or an eviction the work is done.
  Conflict,   ///< 409, or 422 whose only cause is `metadata.uid`: another object or version now, plan again from fresh
              ///< state.
  Contested,  ///< 409 with cause FieldManagerConflict: an operator or tool owns the field, leave it.
  Gone,       ///< 410 as a status or inside an ERROR event, or 504 with cause ResourceVersionTooLarge: list again (only
              ///< WatchMachine).
  Blocked,    ///< 429 or 403 with cause DisruptionBudget: a PodDisruptionBudget says not now.
  TooManyRequests,  ///< Any other 429: back off, honour `retry_after`.
  Unauthorized,     ///< 401, or credentials that cannot be read: read them again, back off.
  Forbidden,        ///< 403: a verb is missing, back off long.
  Invalid,          ///< Other 400 and 422: ours, or an admission policy's refusal, do not loop.
  Doubtful,         ///< 5xx with a Status body: refused or done, the answer does not say which; look at the object.
  Declined,         ///< Doubtful, and the object shows that nothing was done: back off long, let others go first.
  Outdated,         ///< A fresh read contradicts what the action rests on: nothing was sent, plan again.
  Altered,          ///< 2xx, but what is stored is not what was sent: an admission webhook changes it; take it back,
                    ///< try again late.
  Unread,           ///< The read that must come before the action failed: nothing was sent, back off.
  Unavailable,      ///< 5xx without a Status, or a broken connection: back off, the call may have happened.
  TimedOut,         ///< No answer in time: the call may have happened.
  Cancelled,        ///< Somebody asked us to stop: leave quietly.
  Malformed,        ///< Bytes we cannot read: skip that object loudly, never the stream.
};

/// What failed: `kind` decides what to do, `message` is for people and is never read by code.
struct Error {
  ErrorKind kind = ErrorKind::Unavailable;
  std::string message;
  std::optional<std::chrono::milliseconds> retry_after;  ///< The server's own wish, bounded by the parser.

  friend bool operator==(const Error&, const Error&) = default;
};

/// A value, or why there is none.
template <class T>
using Result = std::expected<T, Error>;

/// Done, or why not.
using Status = Result<void>;

/// The kind's name as it appears in logs and metrics.
[[nodiscard]] std::string_view to_string(ErrorKind kind);

/// Shorthand for `std::unexpected(Error{...})`.
[[nodiscard]] std::unexpected<Error> fail(ErrorKind kind, std::string message);

}  // namespace dhc
