#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/shared/scene.h"

namespace dhc::eviction {

/// When the policy wants the pod gone: the incident's opening plus `evict.after`.
[[nodiscard]] MonoTime due_at(const Exposure& exposure);

/// Which time must still pass: the policy's windows, and the device being Unknown just now. Also says if nothing would
/// ever be evicted.
[[nodiscard]] std::optional<Ruling> window_of(const Exposure& exposure, const Scene& scene);

/// That the pod's controller lost a pod to the same device within the hour (invariant I15).
[[nodiscard]] std::optional<Ruling> same_device_again(const Exposure& exposure, const Scene& scene);

/// That new pods are not seen to be kept off the device.
/// **Source:** seen on 1.37.1: without a taint the replacement of a DRA pod comes straight back to the bad device.
[[nodiscard]] std::optional<Ruling> still_schedulable(const Exposure& exposure, const Scene& scene);

/// That the node's allocatable does not show the loss yet; for 60 s at most.
[[nodiscard]] std::optional<Ruling> loss_not_shown(const Exposure& exposure, const Scene& scene);

/// That our condition is not seen on the pod yet; for 30 s at most.
[[nodiscard]] std::optional<Ruling> condition_not_shown(const Exposure& exposure, const Scene& scene);

/// The first of these, and of the Job's credit, that holds the pod. Order comes from what is seen in the World, never
/// from the order of calls.
[[nodiscard]] std::optional<Ruling> waiting_for(const Exposure& exposure, const Scene& scene);

/// Another exposure of the same Job that will be ready within a minute: pods of one incident go in one turn. `siblings`
/// are all exposures of the Job.
[[nodiscard]] std::optional<Ruling> waiting_for_siblings(const Exposure& exposure,
                                                         const std::vector<const Exposure*>& siblings,
                                                         const Scene& scene);

/// What was waited for in vain, and is gone without; none if all was seen.
[[nodiscard]] std::optional<std::string> patience_ended(const Exposure& exposure, const Scene& scene);

/// Why the last attempt on this pod forbids another one now. One that was accepted in vain forbids none.
[[nodiscard]] std::optional<Ruling> held_by_last_attempt(const k8s::Pod& pod, const Scene& scene);

}  // namespace dhc::eviction
