#pragma once
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// Whether our rule keeps new pods off, as we made it.
[[nodiscard]] bool keeps_off(const k8s::DeviceTaintRule* rule);

/// Whether the device has an incident of its own in which the rest of its physical card is asked for, and is itself
/// kept from new pods, by our rule or by its driver's taint.
[[nodiscard]] bool speaks_for_card(const PlanInput& input, const DeviceKey& key);

/// The other devices of its card that are to be tainted with it, and that the scheduler may hand out until they are;
/// sorted. Not those whose rule somebody has deleted or changed, which is that person's word (invariant I14).
[[nodiscard]] std::vector<DeviceKey> open_on_card(const PlanInput& input, const DeviceKey& key);

}  // namespace dhc
