#pragma once
#include <optional>
#include <vector>

#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// That the pod has been told of its eviction and has time left (`evict.notice`).
[[nodiscard]] std::optional<HoldReason> has_time_left(const AffectedPod& affected, const PlanInput& input);

/// The same of those that go together: the one that has most time left holds all.
/// `gang`: null unless they are one.
[[nodiscard]] std::optional<HoldReason> waits_for_checkpoint(const Unit& unit, const GangUnit* gang,
                                                             const PlanInput& input);

/// Whether what is said of its notice changes with the time of the plan: it is not shown yet, or an answer is refused,
/// which may be dated ahead.
[[nodiscard]] bool changes_with_time(const AffectedPod& affected, const PlanInput& input);

/// How the pod's notice ended, and why its answer has no effect.
[[nodiscard]] std::vector<HoldReason> remarks_on_notice(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc::eviction
