#pragma once
#include <optional>

#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What is said of a pod that is ending: by whom, and whether it still counts as in flight.
[[nodiscard]] HoldReason departing(const k8s::Pod& pod, const PlanInput& input);

/// True while an eviction of the pod is being sent, or was accepted and may still show.
[[nodiscard]] bool is_under_way(const k8s::Pod& pod, const PlanInput& input);

/// That the API server accepted the eviction and the pod does not end: something between the answer and the pod is
/// broken, and nothing else says so. None: it is not so.
[[nodiscard]] std::optional<HoldReason> in_vain(const k8s::Pod& pod, const PlanInput& input);

}  // namespace dhc::eviction
