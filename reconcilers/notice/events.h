#pragma once
#include <optional>
#include <span>

#include "reconcilers/notice/action.h"
#include "reconcilers/notice/next_steps.h"
#include "reconcilers/notice/plan.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// Which Events are sent now: one for each subject, reason and incident, by a name that follows from them, so that a
/// restart sends none twice. The first about a pod says what comes next and how to keep the pod; each repeats the
/// driver's words; and when a pod is evicted its controller, which remains, is told as well. What breaks on several
/// nodes by one roll-out is told on its DaemonSet, and not on each pod that its incident has opened.
[[nodiscard]] Planned<EmitEvent> plan_events(const PlanInput& input, std::span<const Verdict> verdicts,
                                             const NextSteps& next, const std::optional<RejectedConfig>& rejected);

}  // namespace dhc::notice
