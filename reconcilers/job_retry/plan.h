#pragma once
#include <variant>

#include "reconcilers/job_retry/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::job_retry {

using JobAction = std::variant<PatchJob, RecreateJob>;

/// Decides which Jobs get retries back, what became of those given, and what is said of Jobs and their pods. At most
/// one patch a Job: several pods of one Job on bad devices are one incident.
[[nodiscard]] Planned<JobAction> plan(const PlanInput& input);

}  // namespace dhc::job_retry
