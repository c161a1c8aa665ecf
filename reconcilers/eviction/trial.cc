#include "reconcilers/eviction/trial.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/exclusions.h"

namespace dhc::eviction {

namespace {

/// Nothing but the brake, and what must happen before an eviction, holds the pod.
bool is_candidate(const Exposure& exposure, const Scene& scene) {
  const auto& pod = exposure.pod();
  if (exposure.mode != Mode::Enforce || exposure.holding->ambiguous || exposure.holding->shared) return false;
  if (!pod.meta.controller || pod.meta.deletion || scene.ledger.eviction(pod.meta.uid) != nullptr) return false;
  if (!scene.brake.may_try(exposure.key, pod.node_name, pod.meta.uid, scene.policy.limits, scene.now)) return false;
  return !excluded_because(exposure, scene) && !window_of(exposure, scene);
}

}  // namespace

std::optional<TrialChoice> choose_trial(const Scene& scene, PlaceSearch& search) {
  const bool any_is_due = std::ranges::any_of(scene.brake.engaged(), [&](const auto& entry) {
    return !entry.second.trial && scene.now.mono >= next_trial_at(entry.second, scene.policy.limits);
  });
  if (!any_is_due || scene.policy.limits.paused) return std::nullopt;
  for (const auto& exposure : scene.exposures) {
    if (!is_candidate(exposure, scene)) continue;
    const auto& pod = exposure.pod();
    if (!search.places().find(std::array{&pod}, exposure.key.scope)) continue;
    BrakeTrial trial;
    trial.key = exposure.key;
    trial.ns = pod.meta.ns;
    trial.pod = pod.meta.name;
    trial.pod_uid = pod.meta.uid;
    if (pod.meta.controller) trial.owner_uid = pod.meta.controller->uid;
    trial.owner_is_watched = scene.world.owner(trial.ns, trial.owner_uid) != nullptr;
    trial.chosen = moment_of(scene.now);
    return TrialChoice{.trial = std::move(trial), .node = pod.node_name};
  }
  return std::nullopt;
}

}  // namespace dhc::eviction
