#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/log.h"
#include "app/message.h"
#include "app/metrics.h"
#include "app/status_store.h"
#include "domain/policy/config.h"
#include "domain/policy/policy.h"

namespace dhc {

/// What the program itself adds to every configuration.
struct PolicyFrame {
  Mode mode_cap = Mode::Observe;
  bool events = true;
  bool status = false;
  std::string own_namespace;
  std::string own_pod_uid;
};

/// One read of the configuration.
struct PolicyRead {
  Result<Policy> policy;
  std::string brake_release;      ///< The annotation of the ConfigMap, if it has one.
  std::string cap_release;        ///< Likewise.
  std::string pause_until = {};   ///< Likewise.
  std::string pause_reason = {};  ///< Likewise.
  Result<std::vector<ScopedPause>> pauses = std::vector<ScopedPause>{};  ///< Of its annotations; the first mistake.
  bool is_read = false;           ///< The annotations are those of a ConfigMap that is there.
  std::optional<Subject> source;  ///< The ConfigMap, if it came from one.
};

/// What operators say in annotations, beside the documents.
void set_annotations(Policy& policy, const PolicyRead& read);

/// Takes what was read of the configuration, wherever it comes from: hands a new policy to the controller, keeps the
/// last good one otherwise, and says so in log, metrics and readiness. What operators say in annotations holds whatever
/// is wrong elsewhere: a pause must not wait until somebody has corrected a policy. One thread, where it
/// says no other.
class PolicyDesk {
 public:
  PolicyDesk(PolicyFrame frame, std::function<void(Message)> send, StatusStore& status_store, Metrics& metrics,
             Log& log);

  /// The same policy, or the same mistake, twice in a row is no news.
  void take(PolicyRead read);

  /// Somebody has asked for it to be read again: of the next read it is said what came of it, also that nothing did.
  /// Any thread.
  void expect() { expected_ = true; }

 private:
  void accept(Policy policy, bool is_expected);
  [[nodiscard]] bool keep(PolicyRead& read);
  void reject(const Error& error, std::optional<Subject> source, bool is_expected);

  const PolicyFrame frame_;
  const std::function<void(Message)> send_;
  StatusStore& status_store_;
  Metrics& metrics_;
  Log& log_;
  std::shared_ptr<const Policy> current_;
  std::string problem_;
  std::atomic<bool> expected_ = false;
};

/// A configuration as a policy; the error is its first mistake with place and remedy, and how many more there are.
[[nodiscard]] Result<Policy> policy_of(ConfigResult config);

/// The policy of a program that was given none: everything unhealthy for 60 s is shown, nothing is done.
[[nodiscard]] Policy built_in_policy();

}  // namespace dhc
