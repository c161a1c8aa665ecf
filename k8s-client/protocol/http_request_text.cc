#include "k8s-client/protocol/http_request_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "k8s-client/protocol/ascii.h"

namespace dhc::k8s {
namespace {

/// A header's name: RFC 9110 "token".
bool is_token_char(char c) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || kMarks.contains(c);
}

/// Visible ASCII, blank, tab and anything above 0x7f.
bool is_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/// Visible ASCII: all else must be percent-encoded. `#` would start a fragment, which is never sent.
bool is_target_char(char c) { return c > 0x20 && c < 0x7f && c != '#'; }

/// These decide where a message ends, who gets it, or in which form it comes back.
bool is_the_transports_own(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kOwn = {
      "accept-encoding", "connection",        "content-length", "expect", "host", "keep-alive", "te",
      "trailer",         "transfer-encoding", "upgrade"};
  return std::ranges::find(kOwn, to_lower_ascii(name)) != kOwn.end();
}

Status check_target(std::string_view target) {
  if (!target.starts_with('/')) return fail(ErrorKind::Invalid, "request target does not start with '/'");
  if (!std::ranges::all_of(target, is_target_char)) {
    return fail(ErrorKind::Invalid, "request target holds a byte that must be percent-encoded");
  }
  return {};
}

bool has_body(const Request& request) {
  return !request.body.empty() || request.method == Method::Post || request.method == Method::Put ||
         request.method == Method::Patch;
}

}  // namespace

std::string build_authority(std::string_view host, std::uint16_t port, bool tls) {
  std::string out = host.contains(':') ? fmt::format("[{}]", host) : std::string(host);
  if (port != (tls ? 443 : 80)) out += fmt::format(":{}", port);
  return out;
}

Status check_sendable(const Request& request) {
  if (auto target = check_target(request.target); !target) return target;
  for (const Header& each : request.headers) {
    if (each.name.empty() || !std::ranges::all_of(each.name, is_token_char)) {
      return fail(ErrorKind::Invalid, "a header's name is empty or holds a byte that may not be sent");
    }
    if (!std::ranges::all_of(each.value, is_value_char)) {
      return fail(ErrorKind::Invalid,
                  fmt::format("the value of header {} holds a control byte (a line end in a token file?)", each.name));
    }
    if (is_the_transports_own(each.name)) {
      return fail(ErrorKind::Invalid, fmt::format("header {} is written by the transport alone", each.name));
    }
  }
  return {};
}

Result<std::string> build_request_text(const Request& request, std::string_view authority,
                                       std::string_view path_prefix) {
  if (auto sendable = check_sendable(request); !sendable) return std::unexpected(sendable.error());
  if (!path_prefix.empty()) {
    if (auto prefix = check_target(path_prefix); !prefix) return std::unexpected(prefix.error());
  }
  if (authority.empty() || !std::ranges::all_of(authority, is_target_char)) {
    return fail(ErrorKind::Invalid, "the server's name holds a byte that may not be sent");
  }
  std::string out = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", to_string(request.method), path_prefix,
                                request.target, authority);
  for (const Header& each : request.headers) out.append(each.name).append(": ").append(each.value).append("\r\n");
  if (has_body(request)) out += fmt::format("Content-Length: {}\r\n", request.body.size());
  out += "\r\n";
  out += request.body;
  return out;
}

}  // namespace dhc::k8s
