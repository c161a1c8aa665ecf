#pragma once
#include <memory>

#include "k8s-client/transport.h"

namespace dhc::k8s {

/// A transport over Boost.Beast's HTTP parser and OpenSSL. Each call runs on its caller's thread. `stream` opens its
/// own connection; `send` keeps up to 4 idle ones for 30 s, and drops one when the material changed or the server
/// spoke. A request goes out twice only if a kept connection turns out closed before a byte of an answer and it is a
/// GET.
[[nodiscard]] std::unique_ptr<Transport> make_beast_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits);

}  // namespace dhc::k8s
