#include "base/error.h"

#include <utility>

namespace dhc {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::NotFound:
      return "NotFound";
    case ErrorKind::Conflict:
      return "Conflict";
    case ErrorKind::Contested:
      return "Contested";
    case ErrorKind::Gone:
      return "Gone";
    case ErrorKind::Blocked:
      return "Blocked";
    case ErrorKind::TooManyRequests:
      return "TooManyRequests";
    case ErrorKind::Unauthorized:
      return "Unauthorized";
    case ErrorKind::Forbidden:
      return "Forbidden";
    case ErrorKind::Invalid:
      return "Invalid";
    case ErrorKind::Doubtful:
      return "Doubtful";
    case ErrorKind::Declined:
      return "Declined";
    case ErrorKind::Outdated:
      return "Outdated";
    case ErrorKind::Altered:
      return "Altered";
    case ErrorKind::Unread:
      return "Unread";
    case ErrorKind::Unavailable:
      return "Unavailable";
    case ErrorKind::TimedOut:
      return "TimedOut";
    case ErrorKind::Cancelled:
      return "Cancelled";
    case ErrorKind::Malformed:
      return "Malformed";
  }
  return "Unknown";
}

std::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error{.kind = kind, .message = std::move(message), .retry_after = std::nullopt});
}

}  // namespace dhc
