#include "domain/cluster/workload.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/printable.h"
#include "domain/cluster/owner_chain.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestWorkload = 600;

std::string workload_name(const std::string& ns, const std::string& kind, const std::string& name) {
  return ns + "/" + kind + "/" + name;
}

/// Looks at the pods of the workload that have a controller. A workload is of one namespace, and so are the identities
/// of what controls its pods.
template <class Look>
void for_each_pod_of(std::string_view workload, const World& world, const Look& look) {
  const auto ns = std::string(workload.substr(0, workload.find('/') + 1));
  for (const auto* by_controller : {&world.pods_of_jobs(), &world.pods_of_others()}) {
    for (auto at = by_controller->lower_bound(ns); at != by_controller->end() && at->first.starts_with(ns); ++at) {
      // The first says it of all, who have one controller.
      const auto* first = at->second.empty() ? nullptr : world.pod(*at->second.begin());
      if (first == nullptr || workload_of(first->pod, world) != workload) continue;
      for (const auto& uid : at->second) {
        if (const auto* record = world.pod(uid)) look(*record);
      }
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
  for_each_pod_of(workload, world, [&](const PodRecord& record) {
    for (const auto& held : record.held_devices) {
      if (held.key.scope == scope && !held.ambiguous) cards.insert(world.card_of(held.key));
    }
  });
  return static_cast<std::int64_t>(cards.size());
}

namespace {

/// How much older than another a driver may be to be as new: its pods begin one after the other.
constexpr Millis kAsNew = std::chrono::hours(1);

}  // namespace

DeviceHoldings::DeviceHoldings(std::string_view scope, const World& world) : scope_(scope), world_(world) {
  // A pool's devices, and a resource's on one node, are of one node and reporter.
  std::unordered_map<std::string_view, std::vector<Held>> by_place;
  for (const auto& [key, state] : world.tracker().devices()) {
    if (key.scope != scope || state.holders.empty()) continue;
    by_place[key.place].push_back({.key = &key, .state = &state, .card = world.inventory().card_of(key)});
  }
  std::vector<std::string_view> places;
  for (const auto& [place, held] : by_place) places.push_back(place);
  std::ranges::sort(places);
  for (const auto place : places) {
    auto& held = by_place.at(place);
    const auto& first = *held.front().key;
    const auto [found, is_new] = units_.try_emplace(unit_of(first));
    auto& unit = found->second;
    if (const auto reporter = is_new ? world.reporter_of(first) : std::nullopt) unit.driver_began = reporter->began;
    std::ranges::sort(held, {}, &Held::card);
    for (std::size_t i = 0; i < held.size(); ++i) unit.cards += i == 0 || held[i].card != held[i - 1].card ? 1 : 0;
    unit.devices.insert(unit.devices.end(), held.begin(), held.end());
  }
}

std::string DeviceHoldings::unit_of(const DeviceKey& key) const {
  auto node = world_.node_of(key);
  return node.empty() ? key.place : node;
}

/// The cards that the workload holds, with the names of their units.
std::map<DeviceKey, std::string> DeviceHoldings::cards_of(std::string_view workload, const DeviceKey& key) const {
  std::map<DeviceKey, std::string> cards;
  const auto look = [&](const PodRecord& record) {
    for (const auto& held : record.held_devices) {
      if (held.key.scope == scope_) cards.try_emplace(world_.card_of(held.key), unit_of(held.key));
    }
  };
  for_each_pod_of(workload, world_, look);
  // A pod without a controller is a workload of its own.
  const auto* state = world_.tracker().find(key);
  if (state == nullptr) return cards;
  for (const auto& uid : state->holders) {
    const auto* record = world_.pod(uid);
    if (record != nullptr && !record->pod.meta.controller && workload_of(record->pod, world_) == workload) {
      look(*record);
    }
  }
  return cards;
}

OwnerShare DeviceHoldings::share_of(const std::string& workload, const DeviceKey& key) const {
  const auto there = units_.find(unit_of(key));
  if (there == units_.end()) return {};
  const auto& began = there->second.driver_began;
  const auto is_as_new = [&](const Unit& unit) {
    return !began || !unit.driver_began || *unit.driver_began + kAsNew >= *began;
  };
  Count all;
  Count as_new;
  Count here{.all = static_cast<double>(there->second.cards)};
  for (const auto& [name, unit] : units_) {
    const auto cards = static_cast<double>(unit.cards);
    all.all += cards;
    if (is_as_new(unit)) as_new.all += cards;
  }
  for (const auto& [card, name] : cards_of(workload, key)) {
    const auto unit = units_.find(name);
    if (unit == units_.end()) continue;
    ++all.its;
    if (is_as_new(unit->second)) ++as_new.its;
    if (unit == there) ++here.its;
  }
  const auto share = [](const Count& held) { return held.its == 0 ? 1.0 : held.its / held.all; };
  return {.scope = std::max(share(all), share(as_new)), .node = share(here)};
}

std::int64_t DeviceHoldings::well_beside(const DeviceKey& key, const std::vector<std::string>& workloads) const {
  const auto there = units_.find(unit_of(key));
  if (there == units_.end()) return 0;
  const auto is_theirs = [&](const Held& held) {
    return std::ranges::any_of(workloads_on(*held.key, world_),
                               [&](const auto& one) { return std::ranges::count(workloads, one) > 0; });
  };
  std::map<std::pair<std::string_view, std::string_view>, bool> cards;  // by place and card; whether it is well
  for (const auto& held : there->second.devices) {
    auto& is_well = cards.try_emplace({held.key->place, held.card}, true).first->second;
    is_well = is_well && held.state->health != k8s::Health::Unhealthy && !is_theirs(held);
  }
  return std::ranges::count(cards | std::views::values, true);
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
