#pragma once
#include <cstdint>
#include <optional>

#include "reconcilers/shared/leaving_pods.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// That the loss of this pod would end its Job, or the pod's index, and no policy gives the retry back, or the retry
/// cannot be given: then it is held unless every policy that covers a device of the pod says otherwise. None: it would
/// not, or no Job is known. Retries that other pods have been given count as used: they are on bad devices, too.
/// `leaving` are those that this turn evicts.
/// **Source:** batch/v1, seen on 1.37.1: a Job fails with the failure after its backoffLimit, and a pod that is being
/// deleted counts as one.
[[nodiscard]] std::optional<HoldReason> held_for_job_end(const AffectedPod& affected, const PlanInput& input,
                                                         LeavingPods& leaving);

/// Losses of the Job's other pods that it may not have counted yet: of pods that have gone, are going, or are to go.
[[nodiscard]] std::int64_t uncounted_losses(const k8s::Pod& pod, const JobRecord& record, const PlanInput& input,
                                            LeavingPods& leaving);

/// From when on the Job's own watch has shown that it has counted the pod of this credit, which is there no more: the
/// pod's watch may be ahead of it, and a new process has seen neither. None: it is not known when the pod went.
[[nodiscard]] std::optional<MonoTime> shown_as_counted_at(const JobRecord& record, const RetryCredit& credit,
                                                          const World& world);

}  // namespace dhc
