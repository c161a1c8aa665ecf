#pragma once
#include <expected>

#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// All holders of a shared claim as one unit, or why they are not evicted together. A new pod that names a shared claim
/// gets the same device whatever the taint, so one holder alone is never evicted. **Source:** seen on 1.37.1
/// (kubernetes-tried, section 5).
[[nodiscard]] std::expected<Unit, HoldReason> unit_of_claim(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc::eviction
