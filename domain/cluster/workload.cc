#include "domain/cluster/workload.h"

#include <algorithm>
#include <set>

#include "base/printable.h"
#include "domain/cluster/owner_chain.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestWorkload = 600;

std::string workload_name(const std::string& ns, const std::string& kind, const std::string& name) {
  return ns + "/" + kind + "/" + name;
}

/// Adds the cards of this scope that the pods hold, if they are the workload's: the first says it of all, who have one
/// controller.
void add_cards(const std::set<std::string>& pods, std::string_view workload, const std::string& scope,
               const World& world, std::set<DeviceKey>& cards) {
  const auto* first = pods.empty() ? nullptr : world.pod(*pods.begin());
  if (first == nullptr || workload_of(first->pod, world) != workload) return;
  for (const auto& uid : pods) {
    const auto* record = world.pod(uid);
    if (record == nullptr) continue;
    for (const auto& held : record->held_devices) {
      if (held.key.scope != scope || held.ambiguous) continue;
      cards.insert(world.card_of(held.key));
    }
  }
}

}  // namespace

std::string workload_of(const k8s::Pod& pod, const World& world) {
  const auto& ns = pod.meta.ns;
  const auto* at = &pod.meta;
  auto workload = workload_name(ns, "Pod", pod.meta.name);
  for (int depth = 0; depth < kMostOwners && at != nullptr && at->controller; ++depth) {
    const auto& owner = *at->controller;
    workload = workload_name(ns, owner.kind, owner.name);
    // What only a read would tell is left out: the answer must be the same before it and after.
    at = is_watched(owner) ? world.owner(ns, owner.uid) : nullptr;
  }
  return workload;
}

std::vector<std::string> workloads_on(const DeviceKey& key, const World& world) {
  std::set<std::string> workloads;
  const auto* state = world.tracker().find(key);
  if (state == nullptr) return {};
  for (const auto& uid : state->holders) {
    if (const auto* record = world.pod(uid)) workloads.insert(workload_of(record->pod, world));
  }
  return {workloads.begin(), workloads.end()};
}

std::int64_t devices_held_by(std::string_view workload, const std::string& scope, const World& world) {
  std::set<DeviceKey> cards;
  for (const auto& [identity, pods] : world.pods_of_jobs()) add_cards(pods, workload, scope, world, cards);
  for (const auto& [identity, pods] : world.pods_of_others()) add_cards(pods, workload, scope, world, cards);
  return static_cast<std::int64_t>(cards.size());
}

std::string words_of_workload(std::string_view workload) {
  const auto first = workload.find('/');
  const auto second = workload.find('/', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return printable_cut(workload, kLongestWorkload);
  }
  const std::string ns(workload.substr(0, first));
  const std::string kind(workload.substr(first + 1, second - first - 1));
  return printable_cut(kind + " " + ns + std::string(workload.substr(second)), kLongestWorkload);
}

}  // namespace dhc
