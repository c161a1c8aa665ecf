#pragma once
#include <memory>

#include "k8s-client/transport.h"

namespace dhc::k8s {

/// The transport this build was configured with (DHC_TRANSPORT): Beast, or cpprestsdk.
[[nodiscard]] std::unique_ptr<Transport> make_transport(Endpoint endpoint, TlsSource tls, TransportLimits limits = {});

}  // namespace dhc::k8s
