#pragma once
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// The affected pods in the order in which they are considered. A gang for which slots are kept comes first: whoever
/// came before it would take them. Then what has not been tried: one of each namespace in turn, so that no tenant's
/// many stand before another's one, and the longest suffering of a namespace first. Then what was tried, the longest
/// ago first: what keeps failing never stands before what may succeed.
[[nodiscard]] std::vector<const AffectedPod*> fair_order(const PlanInput& input);

}  // namespace dhc::eviction
