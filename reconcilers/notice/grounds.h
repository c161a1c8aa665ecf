#pragma once
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// The nodes that devices break by, and the releases of drivers, on their DaemonSets: advice, on which nothing rests.
[[nodiscard]] std::vector<Verdict> find_suspected_grounds(const PlanInput& input);

}  // namespace dhc::notice
