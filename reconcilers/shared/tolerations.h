#pragma once
#include <optional>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// What every allocation of the device to the pod's claim tolerates; empty: nothing, or the claim is not known.
[[nodiscard]] std::vector<k8s::Toleration> tolerations_of(const HeldDevice& held_device, const DeviceKey& key,
                                                          const World& world);

/// That the pod's claim tolerates the taint of our rules, or every standing taint of the driver that the policy names:
/// its tenant has asked for such a device, and the scheduler would hand its replacement the same one.
/// **Source:** KEP-5055: device-taint-eviction does not evict such a pod either.
[[nodiscard]] std::optional<HoldReason> tolerated(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc
