#include "k8s-client/protocol/api_error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/protocol/retry_after.h"
#include "k8s-client/protocol/status_body.h"

namespace dhc::k8s {
namespace {

constexpr std::size_t kMaxMessage = 1024;

/// The code that belongs to a reason, for a Status without one. **Source:** apimachinery meta/v1 StatusReason.
std::int64_t code_of_reason(std::string_view reason) {
  struct Row {
    std::string_view reason;
    std::int64_t code;
  };
  static constexpr std::array<Row, 14> kRows = {
      Row{"Unauthorized", 401},    Row{"Forbidden", 403},         Row{"NotFound", 404},
      Row{"AlreadyExists", 409},   Row{"Conflict", 409},          Row{"Gone", 410},
      Row{"Expired", 410},         Row{"Invalid", 422},           Row{"BadRequest", 400},
      Row{"TooManyRequests", 429}, Row{"Timeout", 504},           Row{"ServerTimeout", 500},
      Row{"InternalError", 500},   Row{"ServiceUnavailable", 503}};
  const auto* const row = std::ranges::find(kRows, reason, &Row::reason);
  return row != kRows.end() ? row->code : 500;
}

bool has_cause(const StatusBody& status, std::string_view reason) {
  return std::ranges::any_of(status.causes, [&](const StatusCause& cause) { return cause.reason == reason; });
}

/// Design section 9, "Errors by remedy": the only place where a code becomes a kind.
ErrorKind kind_of(std::int64_t code, const std::optional<StatusBody>& said, bool is_of_other) {
  const StatusBody status = said.value_or(StatusBody{});
  switch (code) {
    case 401:
      return ErrorKind::Unauthorized;
    case 403:
      return has_cause(status, "DisruptionBudget") ? ErrorKind::Blocked : ErrorKind::Forbidden;
    case 404:
      // What a proxy does not find says nothing about what the cluster has.
      return is_of_other ? ErrorKind::Unavailable : ErrorKind::NotFound;
    case 408:
      return ErrorKind::TimedOut;
    case 409:
      return has_cause(status, "FieldManagerConflict") ? ErrorKind::Contested : ErrorKind::Conflict;
    case 410:
      return ErrorKind::Gone;
    case 422:
      // A wrong UID in an apply or patch reads "field is immutable". **Source:** seen on 1.37.1.
      return status.causes.size() == 1 && status.causes.front().field == "metadata.uid" ? ErrorKind::Conflict
                                                                                        : ErrorKind::Invalid;
    case 429:
      return has_cause(status, "DisruptionBudget") ? ErrorKind::Blocked : ErrorKind::TooManyRequests;
    case 504:
      // This replica has not reached our version yet: the remedy is a list without a version, as for 410.
      // **Source:** apimachinery meta/v1 CauseTypeResourceVersionTooLarge.
      if (has_cause(status, "ResourceVersionTooLarge")) return ErrorKind::Gone;
      // The server's own says that it has given the request up; a proxy's that nobody has answered.
      return said ? ErrorKind::Doubtful : ErrorKind::TimedOut;
    default:
      // Redirects are not followed, so a 3xx is somebody's configuration, not a server in trouble.
      if (code >= 300 && code < 500) return ErrorKind::Invalid;
      // The API server's own 5xx stands for a refusal that lasts (two budgets, a webhook that is down) and for a write
      // that may have been committed (etcd timed out) alike. **Source:** seen on 1.37.1.
      return said && code >= 500 ? ErrorKind::Doubtful : ErrorKind::Unavailable;
  }
}

/// At most `kMaxMessage` bytes, cut between characters, control characters as spaces: it goes to logs and Events.
std::string cleaned(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  if (text.size() > kMaxMessage) {
    auto end = kMaxMessage;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

bool is_html(const Response& response) {
  const auto start = response.body.find_first_not_of(" \t\r\n");
  return (start != std::string::npos && response.body[start] == '<') ||
         header(response, "content-type").value_or("").starts_with("text/html");
}

/// Something else than an API server: what it does not have it says by a Status, or in plain text where it serves no
/// such path. **Source:** seen on 1.37.1: `404 page not found`.
bool is_of_other(const Response& response) { return is_html(response) || response.body.starts_with('{'); }

/// What a body that is no Status says: the API server's own plain text, or that something else answered.
std::string text_message(const Response& response) {
  const auto body = std::string_view(response.body).substr(0, kMaxMessage);
  const auto start = body.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return fmt::format("HTTP {} without a body", response.status);
  if (is_html(response)) {
    return fmt::format("HTTP {} with an HTML page: a proxy, not the API server, answered", response.status);
  }
  if (body[start] == '{' || is_protobuf(body))
    return fmt::format("HTTP {} with a body that is no Status", response.status);
  std::string text(body.substr(start));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return cleaned(std::move(text));
}

std::string message_of(std::int64_t code, const StatusBody& status) {
  std::string message = status.message;
  for (const auto& cause : status.causes) {
    // The PDB's name is only here. **Source:** seen on 1.37.1.
    if (cause.reason == "DisruptionBudget" && !cause.message.empty()) message += fmt::format(" {}", cause.message);
  }
  if (message.empty()) message = fmt::format("HTTP {} {}", code, status.reason);
  return cleaned(std::move(message));
}

}  // namespace

Error error_from_response(const Response& response) {
  const auto status = read_status_body(response.body);
  std::optional<Millis> wish;
  if (const auto value = header(response, "retry-after")) {
    wish = parse_retry_after(*value, header(response, "date"));
  } else if (status) {
    wish = status->retry_after;
  }
  // The status line decides, not the body's own copy of it.
  return Error{.kind = kind_of(response.status, status, !status && is_of_other(response)),
               .message = status ? message_of(response.status, *status) : text_message(response),
               .retry_after = wish};
}

Error error_from_status_object(std::string_view body) {
  const auto status = read_status_body(body);
  if (!status) {
    return Error{.kind = ErrorKind::Unavailable,
                 .message = "the server ended the watch with an object that is no Status",
                 .retry_after = std::nullopt};
  }
  const auto code = status->code != 0 ? status->code : code_of_reason(status->reason);
  return Error{
      .kind = kind_of(code, status, false), .message = message_of(code, *status), .retry_after = status->retry_after};
}

}  // namespace dhc::k8s
