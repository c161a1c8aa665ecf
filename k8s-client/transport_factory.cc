#include "k8s-client/transport_factory.h"

#include <utility>

#include "k8s-client/beast_transport.h"

namespace dhc::k8s {

std::unique_ptr<Transport> make_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits) {
  return make_beast_transport(std::move(endpoint), std::move(tls), limits);
}

}  // namespace dhc::k8s
