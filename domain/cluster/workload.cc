#include "domain/cluster/workload.h"

#include <algorithm>
#include <set>
#include <utility>

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

const k8s::OwnerRef* top_controller_of(const k8s::Pod& pod, const World& world) {
  const k8s::OwnerRef* top = nullptr;
  const auto* at = &pod.meta;
  for (int depth = 0; depth < kMostOwners && at != nullptr && at->controller; ++depth) {
    top = &*at->controller;
    // What only a read would tell is left out: the answer must be the same before it and after.
    at = is_watched(*top) ? world.owner(pod.meta.ns, top->uid) : nullptr;
  }
  return top;
}

std::string workload_of(const k8s::Pod& pod, const World& world) {
  const auto* top = top_controller_of(pod, world);
  return top == nullptr ? workload_name(pod.meta.ns, "Pod", pod.meta.name)
                        : workload_name(pod.meta.ns, top->kind, top->name);
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

namespace {

/// How much older than another a driver may be to be as new: its pods begin one after the other.
constexpr Millis kAsNew = std::chrono::hours(1);

}  // namespace

DeviceHoldings::DeviceHoldings(std::string scope, const World& world) : world_(world) {
  for (const auto& [key, state] : world.tracker().devices()) {
    if (key.scope != scope || state.holders.empty()) continue;
    const auto name = world.node_of(key);
    const auto [found, is_new] = nodes_.try_emplace(name.empty() ? key.place : name);
    auto& node = found->second;
    if (is_new) {
      const auto reporter = world.reporter_of(key);
      if (reporter) node.driver_began = reporter->began;
    }
    const auto card = world.card_of(key);
    if (state.health == k8s::Health::Unhealthy) node.bad.insert(card);
    for (auto& workload : workloads_on(key, world)) node.cards[card].insert(std::move(workload));
  }
}

DeviceHoldings::Count DeviceHoldings::count(const OnNode& node, const std::string& workload) {
  Count count;
  for (const auto& [card, workloads] : node.cards) {
    ++count.all;
    if (workloads.contains(workload)) ++count.its;
  }
  return count;
}

OwnerShare DeviceHoldings::share_of(const std::string& workload, const DeviceKey& key) const {
  const auto name = world_.node_of(key);
  const auto there = nodes_.find(name.empty() ? key.place : name);
  if (there == nodes_.end()) return {};
  const auto began = there->second.driver_began;
  Count all;
  Count as_new;
  for (const auto& [other, node] : nodes_) {
    const auto held = count(node, workload);
    all.all += held.all;
    all.its += held.its;
    if (began && node.driver_began && *node.driver_began + kAsNew < *began) continue;
    as_new.all += held.all;
    as_new.its += held.its;
  }
  const auto share = [](const Count& held) { return held.its == 0 ? 1.0 : held.its / held.all; };
  return {.scope = std::max(share(all), share(as_new)), .node = share(count(there->second, workload))};
}

std::int64_t DeviceHoldings::well_beside(const DeviceKey& key, const std::vector<std::string>& workloads) const {
  const auto name = world_.node_of(key);
  const auto there = nodes_.find(name.empty() ? key.place : name);
  if (there == nodes_.end()) return 0;
  return std::ranges::count_if(there->second.cards, [&](const auto& entry) {
    const auto& [card, holders] = entry;
    return !there->second.bad.contains(card) &&
           std::ranges::none_of(workloads, [&](const auto& one) { return holders.contains(one); });
  });
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
