#pragma once
#include <optional>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// What every allocation of the device to the pod's claim tolerates; empty: nothing, or the claim is not known.
[[nodiscard]] std::vector<k8s::Toleration> tolerations_of(const HeldDevice& held_device, const DeviceKey& key,
                                                          const World& world);

/// Whether taints that stand now, of the driver or of any DeviceTaintRule, keep the pod's replacement off the device;
/// where the report may mean one of several, off each of them. What the claim tolerates keeps nobody off.
[[nodiscard]] bool is_kept_off(const AffectedPod& affected, const PlanInput& input);

/// Whether the policy has this device, or its node, tainted, as far as no operator has said no.
[[nodiscard]] bool will_be_tainted(const AffectedPod& affected, const PlanInput& input);

/// Whether our taint stands on the pod's node.
[[nodiscard]] bool node_is_tainted(const AffectedPod& affected, const World& world);

/// Whether a DRA pod, and so its replacement, tolerates the taint with which we keep others off: by its claim that of
/// the device; by its own spec that of the node, where the API server has no DeviceTaintRules. A device plugin's device
/// is not handed out again whatever a pod tolerates.
[[nodiscard]] bool tolerates_ours(const AffectedPod& affected, const World& world);

/// That a DRA pod stays where it is. Either its claim tolerates every standing taint of the driver that the policy
/// names: its tenant accepts that very fault. Or it would be let onto this device again, because it tolerates the taint
/// with which the policy keeps others off, and nothing else keeps it off; `evict.untainted` evicts it all the same.
/// **Source:** KEP-5055: device-taint-eviction evicts no pod whose claim tolerates the taint.
[[nodiscard]] std::optional<HoldReason> tolerated(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc
