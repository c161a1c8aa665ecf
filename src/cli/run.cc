#include "cli/run.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/application.h"
#include "app/signals.h"
#include "base/version.h"
#include "k8s-client/auth/access.h"
#include "k8s-client/transport_factory.h"

namespace dhc::cli {

namespace {
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Who stands in our Events: the pod, else the host.
std::string reporting_instance() {
  if (auto pod = variable("POD_NAME"); !pod.empty()) return pod;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "unknown";
  return host.data();
}

/// Names the file, too: who reads of a refused certificate or token has to know where it came from.
std::string cluster_of(const RunOptions& options, const k8s::KubeAccess& access) {
  const auto file = options.kubeconfig.empty() ? variable("KUBECONFIG") : options.kubeconfig;
  return file.empty() ? access.origin : fmt::format("{} of {}", access.origin, file);
}

AppSettings settings_of(const RunOptions& options, const k8s::KubeAccess& access) {
  const bool in_pod = !variable("POD_UID").empty();
  return {.frame = {.mode_cap = options.mode,
                    .events = options.events,
                    .own_namespace = in_pod ? access.ns : variable("POD_NAMESPACE"),
                    .own_pod_uid = variable("POD_UID")},
          .config_file = options.config_file,
          .config_map = options.config_map,
          .policy = {},
          .reporting_instance = reporting_instance(),
          .metrics_address = options.metrics_address,
          .health_address = options.health_address,
          .cluster = cluster_of(options, access)};
}

std::shared_ptr<const k8s::Client> client_of(const k8s::KubeAccess& access) {
  auto tls = [credentials = access.credentials](std::stop_token stop) { return credentials->tls(std::move(stop)); };
  return std::make_shared<k8s::Client>(k8s::make_transport(access.endpoint, std::move(tls)), access.credentials,
                                       fmt::format("device-health-controller/{}", version()));
}
}  // namespace

int run(const RunOptions& options) {
  Log log(options.log_format, options.log_level);
  if (options.mode == Mode::Enforce && options.config_file.empty() && !options.config_map) {
    log.error("--mode enforce needs a configuration: give --config FILE or --config-map NAMESPACE/NAME");
    return kUsage;
  }
  Signals signals;
  const auto access = k8s::default_access({.kubeconfig = options.kubeconfig, .context = options.context},
                                          k8s::AccessSurroundings::of_this_process());
  if (!access) {
    log.error("no access to a cluster", {{"error", access.error().message}});
    return 1;
  }
  log.info("starting", {{"version", version()},
                        {"cluster", cluster_of(options, *access)},
                        {"server", access->endpoint.host},
                        {"port", access->endpoint.port},
                        {"mode", to_string(options.mode)},
                        {"events", options.events ? "true" : "false"}});
  auto application = Application::make(settings_of(options, *access), client_of(*access), log, {});
  if (!application) {
    log.error("cannot start", {{"error", application.error().message}});
    return application.error().kind == ErrorKind::Invalid ? kUsage : 1;
  }
  (*application)->run(signals.token());
  application->reset();
  log.info("stopped");
  return 0;
}

}  // namespace dhc::cli
