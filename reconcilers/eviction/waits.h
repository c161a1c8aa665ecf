#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// When the policy wants the pod gone: the incident's opening plus `evict.after`.
[[nodiscard]] MonoTime due_at(const AffectedPod& affected);

/// Which time must still pass: the policy's windows, and the device being Unknown just now. Also says if nothing would
/// ever be evicted.
[[nodiscard]] std::optional<HoldReason> window_of(const AffectedPod& affected, const PlanInput& input);

/// That the pod's node was cordoned less than `evict.cordonWait` ago: by the time of the cordon's taint, which outlives
/// this process; without one since this process saw the cordon.
[[nodiscard]] std::optional<HoldReason> node_cordoned(const AffectedPod& affected, const PlanInput& input);

/// What holds the pod by itself, before anything in the cluster is waited for: an exclusion, a toleration, the policy's
/// windows, its node's cordon; the first of them, in the order of the gates.
[[nodiscard]] std::optional<HoldReason> held_by_itself(const AffectedPod& affected, const PlanInput& input);

/// That the pod's controller lost a pod to the same device within the hour (invariant I15).
[[nodiscard]] std::optional<HoldReason> same_device_again(const AffectedPod& affected, const PlanInput& input);

/// That new pods are not seen to be kept off the device.
/// **Source:** seen on 1.37.1: without a taint the replacement of a DRA pod comes straight back to the bad device.
[[nodiscard]] std::optional<HoldReason> still_schedulable(const AffectedPod& affected, const PlanInput& input);

/// That the node's allocatable does not show the loss yet; for 60 s at most.
[[nodiscard]] std::optional<HoldReason> loss_not_shown(const AffectedPod& affected, const PlanInput& input);

/// That our condition is not seen on the pod yet; for 30 s at most.
[[nodiscard]] std::optional<HoldReason> condition_not_shown(const AffectedPod& affected, const PlanInput& input);

/// The first of these, and of the Job's credit, that holds the pod; but for the condition. Order comes from what is
/// seen in the World, never from the order of calls.
[[nodiscard]] std::optional<HoldReason> waiting_for(const AffectedPod& affected, const PlanInput& input);

/// An affected pod of a Job that will be ready within a minute.
struct Follower {
  const AffectedPod* affected = nullptr;
  MonoTime ready_at;
};

/// Who of the affected pods of one Job follows the others within a minute.
struct Followers {
  std::vector<Follower> waiting;         ///< In `window_of` or `waiting_for`.
  std::vector<Follower> unshown;         ///< Past these; their conditions are not seen yet.
  std::optional<MonoTime> more_at = {};  ///< When the next of them is near enough to be waited for.
};
[[nodiscard]] Followers followers_of(const std::vector<const AffectedPod*>& siblings, const PlanInput& input);

/// That another pod of its Job is among those who follow: pods of one incident go in one turn.
[[nodiscard]] std::optional<HoldReason> waiting_for_siblings(const AffectedPod& affected,
                                                             const std::vector<Follower>& followers);

/// What was waited for in vain, and is gone without; none if all was seen.
[[nodiscard]] std::optional<std::string> patience_ended(const AffectedPod& affected, const PlanInput& input);

/// Why the last attempt on this pod forbids another one now. One that was accepted in vain forbids none.
[[nodiscard]] std::optional<HoldReason> held_by_last_attempt(const k8s::Pod& pod, const PlanInput& input);

}  // namespace dhc::eviction
