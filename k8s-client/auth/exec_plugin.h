#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/error.h"
#include "k8s-client/auth/exec_credential.h"
#include "k8s-client/auth/kubeconfig.h"

namespace dhc::k8s {

/// How often and how long a plugin may run.
struct ExecLimits {
  Millis timeout = Seconds(60);
  /// Between two runs, unless the credential has expired in between. One that came expired is tried until then.
  Millis rest = Seconds(10);
};

/// The credential of an exec plugin: run when first asked for, shortly before it expires, and after a 401. Thread-safe;
/// one run at a time, whose result all callers share.
class ExecPlugin {
 public:
  ExecPlugin(KubeExec exec, KubeCluster cluster, ExecLimits limits);

  /// The present credential, or a new one. Blocks while the plugin runs, for whomever; Cancelled as soon as `stop`
  /// asks. If a renewal fails, the old credential serves until it has expired.
  [[nodiscard]] Result<ExecCredential> credential(std::stop_token stop);

  /// The server refused the present credential.
  void refused();

 private:
  [[nodiscard]] Result<ExecCredential> run(std::stop_token stop) const;

  const KubeExec exec_;
  const KubeCluster cluster_;
  const ExecLimits limits_;
  std::mutex mutex_;
  std::condition_variable_any done_;
  bool runs_ = false;
  std::optional<ExecCredential> current_;
  std::optional<WallTime> renew_at_;
  std::optional<Error> last_failure_;
  std::optional<std::chrono::steady_clock::time_point> ran_at_;
  bool refused_ = false;
  bool came_expired_ = false;
};

}  // namespace dhc::k8s
