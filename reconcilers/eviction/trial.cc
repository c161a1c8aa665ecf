#include "reconcilers/eviction/trial.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "domain/exclusions.h"
#include "reconcilers/eviction/waits.h"

namespace dhc::eviction {

namespace {

/// Nodes with a bad device of this driver or resource: what they offer of it is as suspect.
std::set<std::string> suspect_nodes(const Scene& scene, const std::string& scope) {
  std::set<std::string> nodes;
  for (const auto& [key, bad] : scene.brake.bad()) {
    if (key.scope == scope) nodes.insert(bad.node);
  }
  return nodes;
}

bool takes_pods(const k8s::Node& node) {
  const auto keeps_off = [](const k8s::Taint& taint) {
    return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
  };
  return node.ready && !node.unschedulable && std::ranges::none_of(node.taints, keeps_off);
}

bool has_free_plugin_devices(const Scene& scene, const k8s::Node& node, const std::string& resource,
                             std::int64_t wanted) {
  std::int64_t used = 0;
  for (const auto& uid : scene.world.pods_on(node.meta.name)) {
    const auto& pod = scene.world.pod(uid)->pod;
    if (is_live(pod)) used += k8s::amount_of(pod.requests, resource);
  }
  return k8s::amount_of(node.allocatable, resource) - used >= wanted;
}

bool has_free_dra_devices(const Scene& scene, const Pool& pool, const std::pair<std::string, std::string>& name,
                          std::int64_t wanted) {
  std::int64_t free = 0;
  for (const auto& [device, published] : pool.devices) {
    const auto key = DeviceKey::dra(name.first, name.second, device);
    if (scene.world.is_allocated(key) || scene.world.tracker().not_healthy().contains(key)) continue;
    if (scene.world.inventory().unschedulable_because(key)) continue;
    if (++free >= wanted) return true;
  }
  return false;
}

/// How many devices of the kind the pod holds, and so will its successor.
std::int64_t wanted_by(const Exposure& exposure) {
  return std::ranges::count_if(exposure.record->holdings, [&](const Holding& holding) {
    return holding.key.source == exposure.key.source && holding.key.scope == exposure.key.scope;
  });
}

bool has_place(const Scene& scene, const Exposure& exposure, const std::set<std::string>& suspect) {
  const auto& scope = exposure.key.scope;
  const auto wanted = std::max<std::int64_t>(wanted_by(exposure), 1);
  if (exposure.key.source == DeviceKey::Source::Plugin) {
    return std::ranges::any_of(scene.world.nodes(), [&](const auto& entry) {
      const auto& [name, node] = entry;
      return !suspect.contains(name) && takes_pods(node) && has_free_plugin_devices(scene, node, scope, wanted);
    });
  }
  return std::ranges::any_of(scene.world.inventory().pools(), [&](const auto& entry) {
    const auto& [name, pool] = entry;
    if (name.first != scope || !pool.published || suspect.contains(pool.node)) return false;
    const auto* node = scene.world.node(pool.node);
    return (node == nullptr || takes_pods(*node)) && has_free_dra_devices(scene, pool, name, wanted);
  });
}

/// Nothing but the brake, and what must happen before an eviction, holds the pod.
bool is_candidate(const Exposure& exposure, const Scene& scene) {
  const auto& pod = exposure.pod();
  if (exposure.mode != Mode::Enforce || exposure.holding->ambiguous || exposure.holding->shared) return false;
  if (!pod.meta.controller || pod.meta.deletion || scene.ledger.eviction(pod.meta.uid) != nullptr) return false;
  if (!scene.brake.may_try(exposure.key, pod.node_name, pod.meta.uid, scene.policy.limits, scene.now)) return false;
  return !excluded_because(exposure, scene) && !window_of(exposure, scene.now);
}

}  // namespace

std::optional<TrialChoice> choose_trial(const Scene& scene) {
  const bool any_is_due = std::ranges::any_of(scene.brake.engaged(), [&](const auto& entry) {
    return !entry.second.trial && scene.now.mono >= next_trial_at(entry.second, scene.policy.limits);
  });
  if (!any_is_due || scene.policy.limits.paused) return std::nullopt;
  std::map<std::string, std::set<std::string>> suspect;
  for (const auto& exposure : scene.exposures) {
    if (!is_candidate(exposure, scene)) continue;
    const auto [nodes, is_new] = suspect.try_emplace(exposure.key.scope);
    if (is_new) nodes->second = suspect_nodes(scene, exposure.key.scope);
    if (!has_place(scene, exposure, nodes->second)) continue;
    const auto& pod = exposure.pod();
    BrakeTrial trial;
    trial.key = exposure.key;
    trial.ns = pod.meta.ns;
    trial.pod = pod.meta.name;
    trial.pod_uid = pod.meta.uid;
    trial.owner_uid = pod.meta.controller_uid();
    trial.owner_is_watched = scene.world.owner(trial.owner_uid) != nullptr;
    trial.chosen = moment_of(scene.now);
    return TrialChoice{.trial = std::move(trial), .node = pod.node_name};
  }
  return std::nullopt;
}

}  // namespace dhc::eviction
