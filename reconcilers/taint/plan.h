#pragma once
#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// Compares what the device memory says with the rules and taints that stand in the cluster. Same scene, same plan.
[[nodiscard]] TaintPlan plan(const Scene& scene);

}  // namespace dhc::taint
