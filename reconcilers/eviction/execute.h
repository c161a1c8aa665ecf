#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// Asks once for the eviction of one pod. Done means that the API server accepted it, not that the pod is gone.
/// NotFound (the pod is gone) and Conflict (another pod has its name) are left to the planner, which sees the pods. May
/// block for 35 s; safe to repeat because of the UID precondition.
[[nodiscard]] Status execute(const EvictPod& action, const k8s::Client& client, std::stop_token stop);

}  // namespace dhc::eviction
