#pragma once
#include <optional>
#include <span>

#include "reconcilers/notice/action.h"
#include "reconcilers/notice/plan.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// Which Events are sent now: one for each subject, reason and incident, by a name that follows from them, so that a
/// restart sends none twice.
[[nodiscard]] Planned<EmitEvent> plan_events(const PlanInput& input, std::span<const Verdict> verdicts,
                                             const std::optional<RejectedConfig>& rejected);

}  // namespace dhc::notice
