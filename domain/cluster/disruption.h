#pragma once
#include "base/now.h"
#include "k8s-client/model/pod.h"

namespace dhc {

class World;

/// True if the control plane ended this pod, or is about to: by eviction, drain, preemption or a node that is gone.
/// **Source:** Kubernetes, pod disruption conditions: `DisruptionTarget`.
[[nodiscard]] bool was_disrupted(const k8s::Pod& pod);

/// True if it was, or is, evicted through the Eviction API, by whomever.
[[nodiscard]] bool was_evicted(const k8s::Pod& pod);

/// True if the control plane deleted it for a NoExecute taint of a DRA device that it holds, by its driver or by
/// anybody's rule.
[[nodiscard]] bool was_taken_for_taint(const k8s::Pod& pod);

/// True if its end says nothing about its devices: it was disrupted or deleted, and not for a device's taint.
[[nodiscard]] bool was_taken_otherwise(const k8s::Pod& pod);

/// When somebody asked for the deletion of a pod that has a `deletionTimestamp`, by the API server's clock: that time
/// includes the grace period. One of more than ten years counts as ten.
[[nodiscard]] WallTime asked_to_end_at(const k8s::Pod& pod);

/// Now, as the API server would write it: for what is held against its creationTimestamps later.
[[nodiscard]] WallTime server_now(const World& world, const Now& now);

/// True if a kubelet refused to run this pod. **Source:** seen on 1.37.1: phase Failed, reason
/// UnexpectedAdmissionError.
[[nodiscard]] bool was_rejected(const k8s::Pod& pod);

}  // namespace dhc
