#pragma once
#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// Compares what the incident store says with the rules and taints that stand in the cluster. Same plan input, same
/// plan.
[[nodiscard]] TaintPlan plan(const PlanInput& input);

}  // namespace dhc::taint
