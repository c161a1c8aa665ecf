#include "domain/findings/rejecting_node.h"

#include <algorithm>

#include "domain/cluster/disruption.h"
#include "domain/contract/names.h"
#include "domain/findings/affected_pod.h"

namespace dhc {

namespace {

bool asks_for(const k8s::Pod& pod, const std::string& resource) {
  return std::ranges::any_of(pod.requests, [&](const auto& request) { return request.resource == resource; });
}

/// A process that has just begun sees old rejections late.
Moment rejected_at(const PodEnding& ending, const World& world, const Now& now) {
  const auto& made = ending.pod.meta.creation;
  return made ? std::min(ending.at, moment_of(world.ours(*made), now)) : ending.at;
}

/// What the kubelet of a node before it under its name rejected says nothing about this one. Pods that waited for the
/// node are older than it, so when we saw them end counts.
bool is_of_another_node(const PodEnding& ending, const World& world) {
  const auto* node = world.node(ending.pod.node_name);
  return node != nullptr && node->meta.creation && ending.at.wall < world.ours(*node->meta.creation);
}

bool speaks_before(const DevicePolicy& a, const DevicePolicy& b) {
  if (a.job_retry->taints_rejecting_node != b.job_retry->taints_rejecting_node)
    return a.job_retry->taints_rejecting_node;
  if (a.mode != b.mode) return a.mode == Mode::Enforce;
  return &a < &b;  // they are sorted by priority
}

}  // namespace

std::optional<Moment> RejectingNode::since() const {
  const auto enough = static_cast<std::size_t>(policy->job_retry->rejections);
  return rejections.size() < enough ? std::nullopt : std::optional(rejections[enough - 1]);
}

MonoTime RejectingNode::changes_at() const { return rejections.front().mono + policy->job_retry->rejections_within; }

RejectingNodes find_rejecting_nodes(const World& world, const Policy& policy, const Now& now) {
  RejectingNodes found;
  for (const auto& [uid, ending] : world.endings()) {
    if (!was_rejected(ending.pod) || !ending.node_had_room || is_of_another_node(ending, world)) continue;
    for (const auto& request : ending.pod.requests) {
      const auto key = DeviceKey::plugin(ending.pod.node_name, request.resource, {});
      const auto* rules = policy_for(world, policy, ending.pod, key);
      if (rules == nullptr || !rules->job_retry || rules->mode == Mode::Off) continue;
      if (now.mono - rejected_at(ending, world, now).mono >= rules->job_retry->rejections_within) continue;
      auto& node = found[{ending.pod.node_name, request.resource}];
      node.rejections.push_back(rejected_at(ending, world, now));
      if (node.policy == nullptr || speaks_before(*rules, *node.policy)) node.policy = rules;
    }
  }
  for (auto& [place, node] : found) std::ranges::sort(node.rejections, {}, &Moment::mono);
  return found;
}

std::optional<WallTime> rolls_until(const World& world, const DeviceKey& key, const RejectingNode& rejecting) {
  const auto rollout = world.rollout_of(DeviceKey::plugin(key.place, key.scope, {}));
  const auto last = rejecting.rejections.back().wall;
  if (!rollout || last < rollout->began || last >= rollout->until) return std::nullopt;
  return std::min(rollout->until, rejecting.rejections.front().wall + kRolloutHold);
}

bool admitted_since(const World& world, const DeviceKey& key, WallTime when) {
  return std::ranges::any_of(world.pods_on(key.place), [&](const std::string& uid) {
    const auto* record = world.pod(uid);
    return record != nullptr && record->pod.phase == k8s::PodPhase::Running && !record->pod.meta.deletion &&
           record->pod.meta.creation && world.ours(*record->pod.meta.creation) > when &&
           asks_for(record->pod, key.scope);
  });
}

}  // namespace dhc
