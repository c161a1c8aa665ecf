#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/focus.h"
#include "domain/cluster/world.h"
#include "domain/policy/policy.h"

namespace dhc {

/// One pod that holds one device in a state that a policy names. Points into World and Policy: valid for one turn.
struct AffectedPod {
  DeviceKey key;
  const PodRecord* record = nullptr;
  const HeldDevice* held_device = nullptr;
  const DevicePolicy* policy = nullptr;
  Mode mode = Mode::Observe;  ///< The policy's here (`enforceOn`), capped by the controller's.
  Moment since;               ///< Since when the device is in this state.
  MonoTime opens_at;  ///< When the incident opens: `since` + the policy's `after`, or when `rolls_until` has come.
  /// Of a device that broke while its driver or plugin began anew on its node, or would have opened its incident then:
  /// until when that says nothing, over or not; at most ten minutes after the incident would have opened.
  std::optional<MonoTime> rolls_until = std::nullopt;
  std::uint64_t rollout_cause = 0;  ///< The same for all that broke by one roll-out; 0: it broke by none.
  bool open = false;                ///< `opens_at` has come, and the device was not Unknown then.
  bool unknown_now = false;         ///< The device is Unknown just now: the incident stays, nothing is done.
  bool forgotten = false;           ///< It is so because its reporter began anew, and has not called it bad.
  SignalSource source = SignalSource::Report;
  k8s::Taint taint;  ///< The driver's, if that says it; without an effect only its key is known.
  std::string said;  ///< The driver's words.
  /// Of a pod that holds no such device and goes because its gang does (`evict.groups: Together`): the pod for whose
  /// device it goes. Never among those that are found.
  const AffectedPod* goes_with = nullptr;

  [[nodiscard]] const k8s::Pod& pod() const { return record->pod; }
};

/// How much later than `after` what went bad at `since` counts, because its driver or plugin was being replaced on its
/// node then, or was about to be when the incident would have opened; may be less than nothing. None: it counts as
/// always, also where the incident was open when the roll-out began. At most ten minutes.
[[nodiscard]] std::optional<Millis> rollout_wait(const std::optional<Rollout>& rollout, WallTime since, Millis after);

/// The first policy whose selectors fit this device and pod, whatever the device's state; null if none does.
[[nodiscard]] const DevicePolicy* policy_for(const World& world, const Policy& policy, const k8s::Pod& pod,
                                             const DeviceKey& key);

/// The first policy whose selectors fit and that means a device which is Unhealthy with these words of its driver.
[[nodiscard]] const DevicePolicy* policy_for_unhealthy(const World& world, const Policy& policy, const k8s::Pod& pod,
                                                       const DeviceKey& key, std::string_view said);

/// Every policy whose selectors fit this device and pod, in their order.
[[nodiscard]] std::vector<const DevicePolicy*> policies_for(const World& world, const Policy& policy,
                                                            const k8s::Pod& pod, const DeviceKey& key);

/// Whether any policy whose selectors fit enforces, if only elsewhere.
[[nodiscard]] bool enforced(const World& world, const Policy& policy, const k8s::Pod& pod, const DeviceKey& key);

/// The first condition that a policy names and the driver has set on this device of the claim; null if there is none.
/// **Source:** KEP-4817 for the conditions, KEP-5007 for those that are about binding and never about health.
[[nodiscard]] const k8s::Condition* find_claim_condition(const std::vector<ClaimConditionMatch>& wanted,
                                                         const k8s::ResourceClaim& claim, const DeviceKey& key);

/// Every affected pod, sorted by (since, device, pod UID), so that the longest suffering comes first. Policies with
/// mode off give none. Pods that no kubelet runs any more are left out, and so are claims of pods that are not bound to
/// a node yet.
[[nodiscard]] std::vector<AffectedPod> find_affected_pods(const World& world, const Policy& policy, const Now& now);

/// The pod's hold on the device, as long as a kubelet runs the pod on its node; null: it has none, or is not known.
[[nodiscard]] const HeldDevice* find_live_hold(const PodRecord* record, const DeviceKey& key);

/// What the driver says of the device now by a taint that keeps pods away, whatever policies name; none: nothing.
[[nodiscard]] std::optional<TaintWord> standing_taint(const World& world, const DeviceKey& key, const Now& now);

/// Looks at those in focus; `in_focus` is null: at all.
template <class Look>
void for_each_affected(const std::vector<AffectedPod>& all, const std::vector<const AffectedPod*>* in_focus,
                       const Look& look) {
  if (in_focus == nullptr) {
    for (const auto& affected : all) look(affected);
  } else {
    for (const auto* affected : *in_focus) look(*affected);
  }
}

/// All affected pods, kept from one plan to the next.
class AffectedPods {
 public:
  /// Looks anew at the devices in focus; the others have not changed since the last look.
  void update(const World& world, const Policy& policy, const Focus& focus, const Now& now);

  [[nodiscard]] const std::vector<AffectedPod>& all() const { return all_; }
  /// Those in focus, in the same order; valid until the next look.
  [[nodiscard]] std::vector<const AffectedPod*> in(const Focus& focus) const;

  /// Devices that are bad by the word of a pod which is not affected, or that their driver has tainted under one: no
  /// policy speaks of it, or one says off.
  [[nodiscard]] const std::set<DeviceKey>& unmatched() const { return unmatched_; }

 private:
  void look_for_unmatched(const World& world, const Focus& focus, const std::vector<AffectedPod>& found,
                          const Now& now);

  std::vector<AffectedPod> all_;
  std::set<DeviceKey> unmatched_;
};

}  // namespace dhc
