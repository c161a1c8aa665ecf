#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "reconcilers/shared/plan_input.h"
#include "reconcilers/taint/action.h"

namespace dhc::taint {

using TaintAction = std::variant<ApplyRule, DeleteRule, PatchNodeTaint>;

/// What the reconciler wants, and the nodes whose taint of ours it wants removed, also where that must wait.
struct TaintPlan : Planned<TaintAction> {
  std::set<std::string> untainting;
};

/// Collects what is wanted and said about devices in one turn.
class Speech {
 public:
  explicit Speech(const PlanInput& input)
      : input_(input), caps_(input.caps), taint_tokens_(input.requests.taint_tokens()) {}

  /// About one device; the subject is its node, or its rule where the node is not known.
  void say(const DeviceRecord& record, HoldReason hold);

  /// Why a write with this key must not be sent now; none: it may.
  [[nodiscard]] std::optional<HoldReason> held_back(const std::string& key, const std::string& seen_version,
                                                    std::string_view asks = {}) const;

  /// Why no new taint is made for this device now, whatever it is: a pause, a view that is too old, the brake, or its
  /// state being Unknown.
  [[nodiscard]] std::optional<HoldReason> not_now(const DeviceRecord& record) const;

  /// Why nothing of ours is removed yet: the end of the incident is not written down. A restart would take the removal
  /// for an operator's word.
  [[nodiscard]] std::optional<HoldReason> unsaved(const DeviceRecord& record);

  /// The full cap that stops a new taint of this device, or of a node for this driver or resource; none: it is counted
  /// as taken.
  [[nodiscard]] std::optional<HoldReason> takes_from_caps(const DeviceRecord& record);
  [[nodiscard]] std::optional<HoldReason> takes_node_from_caps(const std::string& scope, const std::string& node);

  /// That the taint of an ended incident is gone, and that the device is on probation.
  void say_ended(const DeviceRecord& record);

  /// Takes one of the new taints that are allowed now; when the next one is, if there is none left.
  [[nodiscard]] std::optional<HoldReason> takes_taint();

  /// Why no new rule is sent while an admission webhook changes those that we make; none: none is known to do so, or
  /// one is to be tried again.
  [[nodiscard]] std::optional<HoldReason> comes_out_otherwise() const;
  /// Takes that one trial; the hold of all others.
  [[nodiscard]] std::optional<HoldReason> takes_trial();

  void act(TaintAction action) { planned_.actions.push_back(std::move(action)); }
  void wake(const DeviceRecord& record, std::optional<MonoTime> at) { planned_.wake(record.key, at); }
  /// What is decided about the device rests on more than itself, its node and its rule.
  void ask_again(const DeviceRecord& record) { ask_again(record.key); }
  void ask_again(const DeviceKey& key) { planned_.again.insert(key); }
  void untaint(const std::string& node) { planned_.untainting.insert(node); }
  [[nodiscard]] TaintPlan done() { return std::move(planned_); }

 private:
  const PlanInput& input_;
  Caps caps_;
  TokenBucket taint_tokens_;  // without those that this plan takes
  bool tries_ = false;        // this plan takes the trial
  TaintPlan planned_;
};

/// The records of the devices in focus, or all, by key.
template <class Look>
void for_each_record(const PlanInput& input, const Look& look) {
  for_each_in(input.focus, input.incidents.records(), look);
}

/// The moment on the clock that windows use.
[[nodiscard]] MonoTime mono_at(WallTime when, const Now& now);

/// When and why the taint would go away, in words, and when by time alone.
[[nodiscard]] HoldReason until_recovered(const DeviceRecord& record, const PlanInput& input, Reason reason,
                                         std::string_view before);

/// How many pods hold the device now.
[[nodiscard]] std::size_t holders_of(const PlanInput& input, const DeviceKey& key);

}  // namespace dhc::taint
