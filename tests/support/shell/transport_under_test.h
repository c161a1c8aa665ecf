#pragma once
#include <memory>
#include <string_view>

#include "k8s-client/transport.h"

namespace dhc::test {

/// What an adapter may be excused from, by name. Each must still fail: an excuse that is no longer needed is removed.
enum class Limitation : std::uint8_t {
  None,
};

/// The adapter that this executable holds to the conformance suite.
[[nodiscard]] std::unique_ptr<k8s::Transport> make_transport_under_test(k8s::Endpoint endpoint, k8s::TlsSource tls,
                                                                        k8s::TransportLimits limits);

/// Whether this adapter is known to lack it; k8s-client/README.md names each.
[[nodiscard]] bool lacks(Limitation limitation);

}  // namespace dhc::test
