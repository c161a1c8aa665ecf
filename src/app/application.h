#pragma once
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/access_review.h"
#include "app/elector.h"
#include "app/log.h"
#include "app/policy_desk.h"
#include "app/record/record_files.h"
#include "app/run_loop.h"
#include "k8s-client/client.h"

namespace dhc {

/// What one run of the controller is told.
struct AppSettings {
  PolicyFrame frame;
  std::string config_file;  ///< At most one of the two; none: the built-in policy.
  std::optional<ConfigMapName> config_map;
  std::string reporting_instance;                           ///< Our pod's name or the host's.
  std::string metrics_address;                              ///< `0`: not served.
  std::string health_address;                               ///< `0`: not served.
  std::string detail_address;                               ///< Of this machine's loopback; `0`: not served.
  std::optional<ElectionSettings> election;                 ///< None: it leads from the start.
  std::string cluster;                                      ///< Whom we speak to and as whom, for the log; no secrets.
  k8s::WireFormat wire_format = k8s::WireFormat::Protobuf;  ///< What watches ask for.
  std::optional<record::RecordSettings> record = {};        ///< None: nothing is recorded.
};

/// The whole controller with its threads: watches, executor, configuration, pages, and the loop on the caller's thread.
class Application {
 public:
  /// Listens on the addresses; what cannot be listened on, and detail for others than the loopback (Invalid), is an
  /// error that names it; so is a folder for recordings that cannot be written. `log` outlives this.
  [[nodiscard]] static Result<std::unique_ptr<Application>> make(AppSettings settings,
                                                                 std::shared_ptr<const k8s::Client> client, Log& log);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// Runs until stopped. Call it once.
  void run(const std::stop_token& stop);

  /// Has the configuration read again now, file or ConfigMap, and says in the log what came of it. Any thread.
  void reload();

  /// Those held now, or at the end of the run. Any thread.
  [[nodiscard]] std::shared_ptr<const std::vector<Verdict>> verdicts() const;

  /// Where detail and the live page are really served, such as `127.0.0.1:41234` after `127.0.0.1:0` was asked for;
  /// empty: they are not. The page is at `http://ADDRESS/`.
  [[nodiscard]] const std::string& detail_address() const;

 private:
  struct Parts;
  explicit Application(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace dhc
