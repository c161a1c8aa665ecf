#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/controller.h"
#include "k8s-client/protocol/watch_session.h"
#include "tests/support/core/conduct.h"
#include "tests/support/core/lab.h"
#include "tests/support/core/plan_oracle.h"
#include "tests/support/core/server_truth.h"

namespace dhc::test {

/// The whole controller against the simulated cluster in virtual time: every watch through its own bytes, every action
/// through its own request. No thread, no socket, no sleep. After each step the invariants are checked, whatever the
/// test is about.
class Scenario : public Lab {
 public:
  explicit Scenario(std::uint64_t seed = 1);
  ~Scenario();

  /// What the controller is told to do; delivered with the next turn.
  Policy& whole_policy() { return policy_; }
  DevicePolicy& policy() { return policy_.policies.front(); }
  void send_policy();
  /// A new configuration that cannot be read.
  void reject_policy(std::string why);
  /// What the webhook's sender says of its receiver; empty: all is well.
  void webhook_says(std::string problem);
  /// From now on the limits' own caps hold; before, none is ever reached.
  void hold_caps() { caps_hold_ = true; }

  /// Lets virtual time pass, stopping wherever cluster, watches or controller have something to do.
  void run_for(Millis span);

  /// While held, nothing arrives by the watch of that kind; what has happened meanwhile comes when it is let go.
  void hold(k8s::Kind kind, bool held);

  /// While mute, streams of that kind open and say nothing, until the client's idle limit ends them.
  void mute(k8s::Kind kind, bool is_mute);

  /// etcd is restored from what `cluster.store().back_up()` gave earlier.
  void restore_etcd(const sim::Store& backup);

  /// What the controller keeps in its namespace is written over with this; nothing: deleted.
  void spoil_state(std::optional<std::string> text);

  /// How far the server's clock is ahead of the controller's; the controller is told, unless it cannot measure it.
  void set_clock_ahead(Millis ahead, bool is_measured = true);

  /// The election's word; delivered with the next turn.
  void lead(bool leads);

  /// A new process: nothing remembered, every watch anew.
  void restart_controller();

  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return controller_.verdicts(); }
  /// The reasons held about a pod, as words, in order.
  [[nodiscard]] std::vector<std::string> reasons(const std::string& pod) const;
  /// Those about a device itself (`driver/pool/device`), not about its pods.
  [[nodiscard]] std::vector<std::string> device_reasons(const std::string& device) const;
  [[nodiscard]] Controller& controller() { return controller_; }
  /// The pods evicted so far, as `namespace/name`.
  [[nodiscard]] std::vector<std::string> evictions() const { return cluster.evictions(); }
  /// What was recorded of the controller since it began: a whole file.
  [[nodiscard]] std::string recording() const { return oracle_.recording(); }
  /// Every action so far, with what became of it.
  [[nodiscard]] const std::vector<Outcome>& outcomes() const { return outcomes_; }

 private:
  struct Watch;
  struct Reply {
    MonoTime at;
    Outcome outcome;
  };
  /// Everything that is to be done at this moment.
  void settle();
  [[nodiscard]] bool pump(Watch& watch);
  [[nodiscard]] bool poll(Watch& watch);
  void pass(const Watch& watch, std::vector<k8s::Delivery> deliveries);
  void execute(const Action& action);
  /// Its requests follow each other within this moment; the answer comes after the delays of all.
  void attempt(const eviction::EvictPod& action);
  void read(const owners::ReadOwner& action);
  /// Sends a request of the controller.
  sim::Answer send(const k8s::Request& request);
  /// Whether the controller leads and each of its watches tells it all.
  [[nodiscard]] bool is_calm() const;
  /// The time as the controller's own clock has it.
  [[nodiscard]] Now own_now() const { return {now.mono, now.wall - server_ahead_}; }
  void check_invariants();
  /// What a read has shown to be wrong is listed afresh.
  void doubt();
  [[nodiscard]] std::optional<MonoTime> next_moment() const;

  Controller controller_;
  PlanOracle oracle_;
  Policy policy_;
  bool caps_hold_ = false;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<Message> inbox_;
  std::vector<Reply> replies_;
  std::vector<Outcome> outcomes_;
  std::optional<MonoTime> wake_at_;
  bool leads_ = true;
  Millis server_ahead_{0};
  Conduct conduct_;
  ServerTruth truth_{cluster};
};

}  // namespace dhc::test
