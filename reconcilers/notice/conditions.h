#pragma once
#include "reconcilers/notice/action.h"
#include "reconcilers/notice/next_steps.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// Which pods' condition is to be written now: True while an incident is open under an enforcing policy, False on
/// recovery, removed when the pod no longer holds the device or no policy covers it. Nothing while the device is
/// Unknown, and nothing under an observing policy (invariants I6, I7, I14). It says what comes next.
[[nodiscard]] Planned<ApplyCondition> plan_conditions(const PlanInput& input, const NextSteps& next);

}  // namespace dhc::notice
