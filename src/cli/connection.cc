#include "cli/connection.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/version.h"
#include "k8s-client/transport_factory.h"

namespace dhc::cli {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<Connection> connect(const k8s::AccessFlags& flags) {
  auto access = k8s::default_access(flags, k8s::AccessSurroundings::of_this_process());
  if (!access) return std::unexpected(std::move(access.error()));
  auto tls = [credentials = access->credentials](std::stop_token stop) { return credentials->tls(std::move(stop)); };
  auto client =
      std::make_shared<k8s::Client>(k8s::make_transport(access->endpoint, std::move(tls)), access->credentials,
                                    fmt::format("device-health-controller/{}", version()));
  const auto file = flags.kubeconfig.empty() ? variable("KUBECONFIG") : flags.kubeconfig;
  auto cluster = file.empty() ? access->origin : fmt::format("{} of {}", access->origin, file);
  return Connection{.access = *std::move(access), .client = std::move(client), .cluster = std::move(cluster)};
}

}  // namespace dhc::cli
