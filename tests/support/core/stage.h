#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/controller.h"
#include "domain/contract/device_key.h"
#include "domain/policy/policy.h"
#include "k8s-client/model/object.h"
#include "tests/support/core/plan_oracle.h"

namespace dhc::test {

/// A pod to be put on a stage; one device-plugin device or one claim, as the fields say.
struct PodSpec {
  std::string name;
  std::string node = "node-a";
  std::string owner = "ReplicaSet/web";  ///< Kind/name; empty: none.
  std::string device = {};               ///< ID of an example.com/gpu device; empty: none.
  k8s::Health health = k8s::Health::Healthy;
  std::string message = {};
  std::string claim = {};  ///< Name of its claim under `gpu`; empty: none.
  k8s::PodPhase phase = k8s::PodPhase::Running;
  std::string ns = "default";  ///< Its owner is always in `default`: in another one the pod only says that it owns it.
};

/// The state ConfigMap with this text.
[[nodiscard]] k8s::ConfigMap state_map(std::string text, const std::string& ns = "dhc");

/// A controller with a hand-made cluster around it, in virtual time: objects in, actions and verdicts out.
/// Names are UIDs too (`uid-<name>`), so that tests read well.
class Stage {
 public:
  Stage();

  // time
  void advance(Millis by) { elapsed_ += by; }
  [[nodiscard]] Now now() const;
  /// Sets the wall clock so far ahead of what it would be; negative: back.
  void set_clock(Millis ahead) { clock_ahead_ = ahead; }

  // configuration
  DevicePolicy& policy() { return policy_.policies.front(); }
  Limits& limits() { return policy_.limits; }
  Policy& whole_policy() { return policy_; }
  void send_policy();
  /// From now on the limits' own caps hold; before, none is ever reached.
  void hold_caps() { caps_hold_ = true; }

  // the cluster
  void node(const std::string& name, std::int64_t capacity, std::optional<std::int64_t> allocatable = std::nullopt,
            bool ready = true);
  k8s::Pod& pod(const PodSpec& spec);  ///< Put, or put anew; later changes need `upsert_pod`.
  k8s::Pod& pod_named(const std::string& name);
  void upsert_pod(const std::string& name);
  void report(const std::string& pod, k8s::Health health, const std::string& message = {});
  void remove_pod(const std::string& name);
  k8s::ResourceClaim& claim(const std::string& name, const std::vector<std::string>& devices,
                            const std::string& owner_pod = {});
  void upsert_claim(const std::string& name);
  void slice(const std::string& node, const std::vector<std::string>& devices,
             const std::vector<std::string>& tainted = {});
  k8s::Job& job_named(const std::string& name);
  void upsert_job(const std::string& name);
  void put(k8s::Object object);
  void remove(k8s::Kind kind, const std::string& name);
  /// The only DeviceTaintRule of ours, or null.
  [[nodiscard]] k8s::DeviceTaintRule* rule();
  /// Whoever made it; null: there is none of this name.
  [[nodiscard]] k8s::DeviceTaintRule* rule_called(const std::string& name);
  [[nodiscard]] std::ptrdiff_t count(k8s::Kind kind) const;
  [[nodiscard]] k8s::Node& node_named(const std::string& name);
  /// The state ConfigMap's text; empty: there is none.
  [[nodiscard]] std::string state_text() const;
  /// From now on the watch of that kind says nothing more of itself; others speak in every turn.
  void silence(k8s::Kind kind) { silent_.insert(kind); }
  void speak(k8s::Kind kind) { silent_.erase(kind); }
  /// Every watch lists afresh: what was put since the last turn is seen in no event.
  void relist();
  /// Every kind's complete list, as a reader of the cluster finds it now.
  [[nodiscard]] std::vector<k8s::Delivery> lists() const;
  void deliver(Message message) { waiting_.push_back(std::move(message)); }

  /// One turn with all that was put; actions are kept until `settle`.
  std::vector<Action> turn();
  /// When the plan that stands wakes.
  [[nodiscard]] std::optional<MonoTime> wake_at() const { return wake_at_; }
  /// Whether the last turn recalled orders.
  [[nodiscard]] bool recalls() const { return recalls_; }
  /// How `settle` answers an eviction from now on; a refused one is not shown on its pod.
  void answer_evictions(std::function<Status(const eviction::EvictPod&)> judge) { judge_ = std::move(judge); }
  /// How `settle` answers the creation of an object by which a node is handed over.
  void answer_objects(std::function<Status(const hand_over::MakeObject&)> judge) { judge_object_ = std::move(judge); }
  /// The objects that stand by `settle`: their JSON, by kind, namespace and name.
  [[nodiscard]] std::map<std::string, std::string>& handed() { return handed_; }
  /// Whether `settle` shows on their pods the evictions that were accepted.
  void show_evictions(bool shown) { shows_evictions_ = shown; }
  /// What a webhook takes out of what `settle` writes: of pods our condition and notice, or all that is written.
  struct Strips {
    bool condition = false;
    bool notice = false;
    bool job = false;
    bool node = false;
  };
  void strip(Strips what) { strips_ = what; }
  /// What a read of the owner of this name finds from now on, and how it ends; without this it finds one that has not
  /// opted out.
  void tell_of_owner(const std::string& name, Status status, OwnerSight sight);
  /// Answers an action.
  void answer(const Action& action, Status status = {});
  /// Shows in the cluster what the action does.
  void show(const Action& action);
  /// A turn, with every action answered well, conditions and evictions shown on the pods; repeated until nothing is
  /// left to do. Gives the evicted pods.
  std::vector<std::string> settle();
  /// Turns and settles through time in steps, and gives the evicted pods in order.
  std::vector<std::string> run_for(Millis time, Millis step = Seconds(1));
  /// A process that starts anew on the same cluster.
  void restart();

  [[nodiscard]] Controller& controller() { return controller_; }
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return controller_.verdicts(); }
  /// The reasons held about a pod, in order, joined by a blank.
  [[nodiscard]] std::string reasons(const std::string& pod) const;
  [[nodiscard]] const Verdict* verdict(const std::string& subject, Reason reason) const;
  [[nodiscard]] const std::vector<notice::EmitEvent>& events() const { return events_; }
  [[nodiscard]] const std::vector<notice::ApplyCondition>& conditions() const { return applied_; }
  [[nodiscard]] const std::vector<job_retry::PatchJob>& patches() const { return patches_; }
  /// Every read of an owner that `settle` has answered.
  [[nodiscard]] const std::vector<owners::ReadOwner>& reads() const { return reads_; }
  /// Every write but Events, as a word each, in order: `apply None gpu-0`, `delete gpu-0`, `taint node-a`, `evict x`...
  [[nodiscard]] const std::vector<std::string>& writes() const { return writes_; }
  /// Watches that reads have shown to be wrong since the last call.
  [[nodiscard]] std::vector<ViewDoubt> doubts() { return std::exchange(doubts_, {}); }
  [[nodiscard]] bool has_event(const std::string& subject, std::string_view reason) const;

 private:
  using Name = std::pair<k8s::Kind, std::string>;
  /// Null: there is no such object.
  [[nodiscard]] k8s::Object* find(k8s::Kind kind, const std::string& name);
  template <class T>
  [[nodiscard]] T* find_as(k8s::Kind kind, const std::string& name);
  void put_owner(const k8s::OwnerRef& owner);
  void show_notice(const std::string& text, k8s::Pod& pod);
  void show(const taint::ApplyRule& apply);
  void show(const taint::PatchNodeTaint& patch);
  void note_write(const Action& action);
  void bump(k8s::Meta& meta);

  Controller controller_;
  PlanOracle oracle_;
  bool recalls_ = false;
  std::optional<MonoTime> wake_at_;
  std::function<Status(const eviction::EvictPod&)> judge_ = [](const eviction::EvictPod&) { return Status{}; };
  bool shows_evictions_ = true;
  Strips strips_;
  std::function<Status(const hand_over::MakeObject&)> judge_object_ = [](const hand_over::MakeObject&) {
    return Status{};
  };
  std::map<std::string, std::string> handed_;
  Policy policy_;
  bool caps_hold_ = false;
  Millis elapsed_{0};
  Millis clock_ahead_{0};
  std::int64_t version_ = 100;
  std::vector<Message> waiting_;
  std::map<std::size_t, k8s::Object> objects_;  // in the order in which they came
  std::map<Name, std::size_t> places_;
  std::vector<notice::EmitEvent> events_;
  std::vector<notice::ApplyCondition> applied_;
  std::vector<job_retry::PatchJob> patches_;
  std::vector<std::string> writes_;
  std::vector<ViewDoubt> doubts_;
  std::set<k8s::Kind> silent_;
  std::set<std::string> noticed_;  // pods with a notice of ours
  std::vector<owners::ReadOwner> reads_;
  std::map<std::string, Outcome> owners_;  // how their reads end, by name
};

/// The names of the pods that the actions evict.
[[nodiscard]] std::vector<std::string> evicted(const std::vector<Action>& actions);

inline constexpr std::string_view kGpu = "example.com/gpu";
inline constexpr std::string_view kDriver = "gpu.example.com";

}  // namespace dhc::test
