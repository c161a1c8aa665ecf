#include "k8s-client/beast_transport.h"
#include "tests/support/shell/transport_under_test.h"

namespace dhc::test {

std::unique_ptr<k8s::Transport> make_transport_under_test(k8s::Endpoint endpoint, k8s::TlsSource tls,
                                                          k8s::TransportLimits limits) {
  return k8s::make_beast_transport(std::move(endpoint), std::move(tls), limits);
}

bool lacks(Limitation /*limitation*/) { return false; }

}  // namespace dhc::test
