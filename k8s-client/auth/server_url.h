#pragma once
#include <string_view>

#include "base/error.h"
#include "k8s-client/endpoint.h"

namespace dhc::k8s {

/// `https://host[:port][/prefix]` as an endpoint; `http` is taken too. IPv6 hosts stand in brackets. Invalid: another
/// scheme or none, a user, a query, a fragment, a bad port or a byte that does not belong there.
[[nodiscard]] Result<Endpoint> parse_server_url(std::string_view url);

/// True for localhost, 127.0.0.0/8 and ::1, where plain HTTP does not leave the machine.
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace dhc::k8s
