#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dhc {

/// Where a plain HTTP server of ours listens.
struct BindAddress {
  std::string host;        ///< An IP, IPv6 without brackets; empty: every address of the machine.
  std::uint16_t port = 0;  ///< 0: any free port.
  friend bool operator==(const BindAddress&, const BindAddress&) = default;
};

/// Whether nobody outside this machine, or this pod, can reach it: 127.0.0.0/8 and ::1 as they are usually written.
[[nodiscard]] bool is_loopback(const BindAddress& address);

/// Whether a request's Host header names this machine's loopback, with or without a port: a page that a browser was
/// led to by another name (DNS rebinding) must not read what is served there.
[[nodiscard]] bool is_loopback_host(std::string_view host);

/// Reads `:8080`, `127.0.0.1:0`, `localhost:8080` or `[::1]:8080`; Invalid with the accepted forms otherwise.
[[nodiscard]] Result<BindAddress> parse_bind_address(std::string_view text);

}  // namespace dhc
