#include "k8s-client/transport_factory.h"

#include <utility>

#ifdef DHC_TRANSPORT_CPPREST
#include "k8s-client/cpprest_transport.h"
#else
#include "k8s-client/beast_transport.h"
#endif

namespace dhc::k8s {

std::unique_ptr<Transport> make_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits) {
#ifdef DHC_TRANSPORT_CPPREST
  return make_cpprest_transport(std::move(endpoint), std::move(tls), limits);
#else
  return make_beast_transport(std::move(endpoint), std::move(tls), limits);
#endif
}

}  // namespace dhc::k8s
