#pragma once
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// Verdicts about nodes, brakes and conditions: silent plugins, vanished devices, engaged brakes, contested
/// conditions, devices that no policy matches.
/// Nobody acts on them by itself.
[[nodiscard]] Planned<Verdict> find_facts(const PlanInput& input);

}  // namespace dhc::notice
