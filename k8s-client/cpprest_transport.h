#pragma once
#include <memory>

#include "k8s-client/transport.h"

namespace dhc::k8s {

/// A transport over cpprestsdk, in the one shape that was found safe: a pool of one thread on which nothing of ours
/// waits, a new client and connection for each call (it sends a POST again on a kept one), own TLS settings, no
/// redirects, bodies through an own stream buffer. What it cannot do stands in k8s-client/README.md.
[[nodiscard]] std::unique_ptr<Transport> make_cpprest_transport(Endpoint endpoint, TlsSource tls,
                                                                TransportLimits limits);

}  // namespace dhc::k8s
