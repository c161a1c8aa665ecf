#include "cli/run.h"

#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/application.h"
#include "app/memory.h"
#include "app/signals.h"
#include "base/version.h"
#include "cli/connection.h"
#include "domain/contract/names.h"
#include "k8s-client/auth/file.h"

namespace dhc::cli {

namespace {
/// Who stands in our Events: the pod, else the host.
std::string reporting_instance() {
  if (auto pod = variable("POD_NAME"); !pod.empty()) return pod;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "unknown";
  return host.data();
}

/// Unique: a container that starts anew in the same pod must not take the Lease of the one before it for its own.
std::string identity(const std::string& instance) {
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", instance, random(), random());
}

std::optional<ElectionSettings> election_of(const RunOptions& options, const std::string& own_namespace) {
  if (!options.leader_elect.value_or(!own_namespace.empty())) return std::nullopt;
  return ElectionSettings{
      .subject = {.ns = own_namespace, .name = std::string(kLeaseName), .manager = std::string(kFieldManager)},
      .identity = identity(reporting_instance())};
}

std::string own_namespace(const Connection& connection) {
  // A Deployment written by hand may pass nothing of the downward API on.
  const bool in_pod = connection.access.in_cluster || !variable("POD_UID").empty();
  return in_pod ? connection.access.ns : variable("POD_NAMESPACE");
}

std::optional<record::RecordSettings> record_of(const RunOptions& options) {
  if (options.record_folder.empty()) return std::nullopt;
  return record::RecordSettings{.folder = options.record_folder, .most_bytes = options.record_most_bytes};
}

AppSettings settings_of(const RunOptions& options, const Connection& connection) {
  return {.frame = {.mode_cap = options.mode,
                    .events = options.events,
                    .status = options.status,
                    .own_namespace = own_namespace(connection),
                    .own_pod_uid = variable("POD_UID")},
          .config_file = options.config_file,
          .config_map = options.config_map,
          .reporting_instance = reporting_instance(),
          .metrics_address = options.metrics_address,
          .health_address = options.health_address,
          .detail_address = options.detail_address,
          .election = election_of(options, own_namespace(connection)),
          .cluster = connection.cluster,
          .wire_format = options.wire_format,
          .record = record_of(options)};
}
// More than a configuration may have: it is told there.
constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;

/// Whom SIGHUP is passed on to, while there is somebody.
class Hangup {
 public:
  void pass_on_to(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    call_ = std::move(call);
  }
  void came() {
    const std::lock_guard lock(mutex_);
    if (call_) call_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> call_;
};

/// Has it passed on for as long as this lives, also if something throws.
class PassesOn {
 public:
  PassesOn(Hangup& hangup, std::function<void()> call) : hangup_(hangup) { hangup_.pass_on_to(std::move(call)); }
  ~PassesOn() { hangup_.pass_on_to({}); }
  PassesOn(const PassesOn&) = delete;
  PassesOn& operator=(const PassesOn&) = delete;

 private:
  Hangup& hangup_;
};

/// A service is told by SIGHUP to read its configuration again; on a terminal it says that the terminal has gone.
std::function<void()> on_hangup(Hangup& hangup) {
  if (::isatty(STDERR_FILENO) == 1) return {};
  return [&hangup] { hangup.came(); };
}

int run(const RunOptions& options, Log& log) {
  if (options.mode == Mode::Enforce && options.config_file.empty() && !options.config_map) {
    log.error("--mode enforce needs a configuration: give --config FILE or --config-map NAMESPACE/NAME");
    return kUsage;
  }
  if (!options.config_file.empty()) {
    if (const auto text = k8s::read_file(options.config_file, kMostConfigBytes); !text) {
      log.error("--config cannot be read", {{"error", text.error().message}});
      return kUsage;
    }
  }
  Hangup hangup;
  Signals signals(on_hangup(hangup));
  const auto connection = connect({.kubeconfig = options.kubeconfig, .context = options.context});
  if (!connection) {
    log.error("no access to a cluster", {{"error", connection.error().message}});
    return 1;
  }
  if (options.leader_elect.value_or(false) && own_namespace(*connection).empty()) {
    log.error("--leader-elect=true needs a namespace for its Lease: run in a pod, or set POD_NAMESPACE");
    return kUsage;
  }
  log.info("starting", {{"version", version()},
                        {"cluster", connection->cluster},
                        {"server", connection->access.endpoint.host},
                        {"port", connection->access.endpoint.port},
                        {"mode", to_string(options.mode)},
                        {"events", options.events ? "true" : "false"}});
  auto application = Application::make(settings_of(options, *connection), connection->client, log);
  if (!application) {
    log.error("cannot start", {{"error", application.error().message}});
    return application.error().kind == ErrorKind::Invalid ? kUsage : 1;
  }
  {
    const PassesOn passes(hangup, [&application] { (*application)->reload(); });
    (*application)->run(signals.token());
  }
  application->reset();
  log.info("stopped");
  return 0;
}
}  // namespace

int run(const RunOptions& options) {
  keep_little_memory();
  Log log(options.log_format, options.log_level);
  try {
    return run(options, log);
  } catch (const std::system_error& error) {
    log.error("the machine refuses a thread or a file that the controller needs",
              {{"error", error.what()},
               {"remedy", "it runs with 80 threads and 200 open files: look at pids.max, ulimit -u and ulimit -n"}});
    return 1;
  }
}

}  // namespace dhc::cli
