#pragma once
#include <optional>

#include "base/error.h"
#include "k8s-client/model/job.h"
#include "reconcilers/eviction/action.h"
#include "reconcilers/shared/leaving_pods.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What the eviction of this affected pod rests on of its Job; none: the loss costs the Job nothing, or its policies
/// say that it may. `leaving` are the pods that this turn evicts.
[[nodiscard]] std::optional<RetryTerms> retry_terms_of(const AffectedPod& affected, const PlanInput& input,
                                                       LeavingPods& leaving);

/// Whether the Job, as it was just read, still bears the loss of the pod. Outdated, with what was found, if it does
/// not.
[[nodiscard]] Status judge_retry(const EvictPod& action, const k8s::Job& fresh);

}  // namespace dhc::eviction
