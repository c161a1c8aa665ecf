#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// The Host header's value: `host`, `host:port` if the port is not the scheme's own, an IPv6 address in brackets.
[[nodiscard]] std::string build_authority(std::string_view host, std::uint16_t port, bool tls);

/// Whether the request may be sent at all: Invalid if the target, a header's name or a header's value holds a byte that
/// could end its line (or any other control byte, space in the target included), if the target does not start with `/`,
/// or if a header is one that the transport alone writes (Host, Content-Length, Transfer-Encoding, Connection, ...).
/// The message never holds a header's value.
/// **Source:** RFC 9110 section 5, RFC 9112 section 3.2; cpprestsdk sends `tok\r\nImpersonate-User: admin` as two
/// headers.
[[nodiscard]] Status check_sendable(const Request& request);

/// The request as HTTP/1.1 bytes, the body included; Invalid as in `check_sendable`. `path_prefix` has no trailing
/// slash.
[[nodiscard]] Result<std::string> build_request_text(const Request& request, std::string_view authority,
                                                     std::string_view path_prefix);

}  // namespace dhc::k8s
