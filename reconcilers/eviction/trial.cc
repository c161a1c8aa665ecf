#include "reconcilers/eviction/trial.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/wake.h"
#include "domain/cluster/gang.h"
#include "domain/cluster/workload.h"
#include "domain/findings/pauses.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/tolerations.h"

namespace dhc::eviction {

namespace {

/// Nothing but the brake, and what must happen before an eviction, holds the pod.
bool is_candidate(const AffectedPod& affected, const PlanInput& input) {
  const auto& pod = affected.pod();
  if (affected.mode != Mode::Enforce || affected.held_device->ambiguous || affected.held_device->shared) return false;
  // The brake lets one pod go, and would keep the others of its gang.
  if (affected.policy->evict && affected.policy->evict->groups_together && gang_of(pod)) return false;
  if (pause_for(input.world, input.policy, input.now.wall, pod, affected.key)) return false;
  if (!pod.meta.controller || pod.meta.deletion || input.requests.eviction(pod.meta.uid) != nullptr) return false;
  if (!input.brake.may_try(affected.key, pod.node_name, pod.meta.uid, input.policy.limits, input.now)) return false;
  return !excluded_because(affected, input) && !tolerated(affected, input) && !window_of(affected, input);
}

/// A trial obeys the caps: one that they refuse would be given up after ten minutes, and the next one as well.
std::optional<HoldReason> refused_by_caps(const AffectedPod& affected, const PlanInput& input) {
  const auto& pod = affected.pod();
  const auto pods = input.caps.has_counted(pod.meta.uid) ? 0 : 1;
  return input.caps.refuses_eviction(affected.key, pod.node_name, pods, {workload_of(pod, input.world)});
}

}  // namespace

NextTrial choose_trial(const PlanInput& input, PlaceSearch& search) {
  const bool any_is_due = std::ranges::any_of(input.brake.engaged(), [&](const auto& entry) {
    return !entry.second.trial && input.now.mono >= next_trial_at(entry.second, input.policy.limits);
  });
  if (!any_is_due) return {};
  Wake wake;
  for (const auto& affected : input.affected_pods) {
    if (!is_candidate(affected, input)) continue;
    if (const auto refused = refused_by_caps(affected, input)) {
      wake.note_after(input.now.mono, refused->until);
      continue;
    }
    const auto& pod = affected.pod();
    if (!search.places().find(std::array{&pod}, affected.key.scope)) continue;
    BrakeTrial trial;
    trial.key = affected.key;
    trial.ns = pod.meta.ns;
    trial.pod = pod.meta.name;
    trial.pod_uid = pod.meta.uid;
    if (pod.meta.controller) trial.owner_uid = pod.meta.controller->uid;
    trial.owner_is_watched = input.world.owner(trial.ns, trial.owner_uid) != nullptr;
    trial.chosen = moment_of(input.now);
    return {.choice = TrialChoice{.trial = std::move(trial), .node = pod.node_name}, .wake_at = {}};
  }
  return {.choice = {}, .wake_at = wake.at()};
}

}  // namespace dhc::eviction
