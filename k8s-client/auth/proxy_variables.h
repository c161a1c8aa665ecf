#pragma once
#include <optional>
#include <string>

#include "k8s-client/endpoint.h"

namespace dhc::k8s {

/// The proxy variables of an environment, empty if not set.
struct ProxyVariables {
  std::string https_proxy;
  std::string http_proxy;
  std::string no_proxy;
};

/// The name of the variable that sends requests for this host through a proxy, if one does. Loopback is never sent
/// there. **Source:** golang.org/x/net/http/httpproxy.
[[nodiscard]] std::optional<std::string> proxy_variable_for(const Endpoint& endpoint, const ProxyVariables& variables);

}  // namespace dhc::k8s
