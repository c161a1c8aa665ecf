#include "domain/cluster/workload.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>

#include "base/printable.h"
#include "domain/cluster/owner_chain.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestWorkload = 600;

std::string workload_name(const std::string& ns, const std::string& kind, const std::string& name) {
  return ns + "/" + kind + "/" + name;
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

bool is_held(const DeviceKey& key, const World& world) {
  const auto* state = world.tracker().find(key);
  return state != nullptr && std::ranges::any_of(state->holders, [&](std::string_view uid) {
           const auto* record = world.pod(uid);
           return record != nullptr && is_live(record->pod);
         });
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

namespace {

/// The identities of all that is under a controller of the workload's name, and of some that are not.
std::set<std::string> identities_under(std::string_view workload, const World& world) {
  std::set<std::string> identities;
  auto wave = world.owner_tree().under(workload);
  for (int depth = 0; depth < kMostOwners && !wave.empty(); ++depth) {
    std::vector<std::string> next;
    for (auto& identity : wave) {
      const auto [at, is_new] = identities.insert(std::move(identity));
      if (is_new) std::ranges::move(world.owner_tree().under(*at), std::back_inserter(next));
    }
    wave = std::move(next);
  }
  return identities;
}

/// Looks at the UIDs of each controller's pods, and at the first of them, until `look` says no.
template <class Look>
void for_each_group_of(std::string_view workload, const World& world, const Look& look) {
  for (const auto& identity : identities_under(workload, world)) {
    for (const auto* pods : world.pods_owned_by(identity)) {
      // The first says it of all, who have one controller.
      const auto* first = pods->empty() ? nullptr : world.pod(*pods->begin());
      if (first != nullptr && workload_of(first->pod, world) == workload && !look(*pods, first->pod)) return;
    }
  }
}

}  // namespace

std::optional<Subject> top_subject_of(const k8s::Pod& pod, const World& world) {
  const auto* top = top_controller_of(pod, world);
  if (top == nullptr) return std::nullopt;
  return Subject{.kind = top->kind, .ns = pod.meta.ns, .name = top->name, .uid = top->uid};
}

Subject subject_of_workload(const std::string& workload, const World& world) {
  std::optional<Subject> found;
  for_each_group_of(workload, world, [&](const SortedTexts& /*pods*/, const k8s::Pod& first) {
    found = top_subject_of(first, world);
    return !found;
  });
  return found.value_or(Subject{.kind = "Workload", .ns = {}, .name = workload, .uid = {}});
}

std::vector<const PodRecord*> pods_of_workload(std::string_view workload, const World& world) {
  std::vector<const PodRecord*> found;
  for_each_group_of(workload, world, [&](const SortedTexts& pods, const k8s::Pod& /*first*/) {
    for (const auto& uid : pods) {
      if (const auto* record = world.pod(uid)) found.push_back(record);
    }
    return true;
  });
  return found;
}

std::int64_t devices_held_by(std::string_view workload, const std::string& scope, const World& world) {
  std::set<DeviceKey> cards;
  for (const auto* record : pods_of_workload(workload, world)) {
    for (const auto& held : record->held_devices) {
      if (held.key.scope == scope && !held.ambiguous) cards.insert(world.card_of(held.key));
    }
  }
  return static_cast<std::int64_t>(cards.size());
}

namespace {

/// The cards that the workload holds of the key's driver or resource, with their places; null: nobody holds it any
/// more.
std::map<DeviceKey, const HeldCards::Place*> cards_of(std::string_view workload, const DeviceKey& key,
                                                      const World& world) {
  std::map<DeviceKey, const HeldCards::Place*> cards;
  const auto look = [&](const PodRecord& record) {
    for (const auto& held : record.held_devices) {
      if (held.key.scope == key.scope)
        cards.try_emplace(world.card_of(held.key), world.held_cards().place_of(held.key));
    }
  };
  for (const auto* record : pods_of_workload(workload, world)) look(*record);
  // A pod without a controller is a workload of its own.
  const auto* state = world.tracker().find(key);
  if (state == nullptr) return cards;
  for (const auto& uid : state->holders) {
    const auto* record = world.pod(uid);
    if (record != nullptr && !record->pod.meta.controller && workload_of(record->pod, world) == workload) look(*record);
  }
  return cards;
}

struct Share {
  std::int64_t all = 0;
  std::int64_t its = 0;
  [[nodiscard]] double value() const { return its == 0 ? 1.0 : static_cast<double>(its) / static_cast<double>(all); }
};

}  // namespace

std::vector<const HeldCards::Place*> places_of(std::string_view workload, const DeviceKey& key, const World& world) {
  std::vector<const HeldCards::Place*> places;
  for (const auto& [card, place] : cards_of(workload, key, world)) {
    if (place != nullptr) places.push_back(place);
  }
  return places;
}

std::optional<WallTime> as_new_as(const HeldCards::Place& place) {
  // A driver's pods begin one after the other.
  constexpr Millis kAsNew = std::chrono::hours(1);
  return place.driver_began ? std::optional(*place.driver_began - kAsNew) : std::nullopt;
}

OwnerShare share_of(std::string_view workload, const DeviceKey& key, const World& world) {
  const auto& held = world.held_cards();
  const auto* there = held.place_of(key);
  if (there == nullptr) return {};
  const auto oldest = as_new_as(*there).value_or(WallTime::min());
  Share scope{.all = held.count(key.scope)};
  Share as_new{.all = there->driver_began ? held.count_since(key.scope, oldest) : scope.all};
  Share here;
  for (const auto* place : held.places_beside(key)) here.all += place->cards;
  for (const auto& [card, place] : cards_of(workload, key, world)) {
    if (place == nullptr) continue;
    ++scope.its;
    if (!place->driver_began || *place->driver_began >= oldest) ++as_new.its;
    if (place->unit == there->unit) ++here.its;
  }
  return {.scope = std::max(scope.value(), as_new.value()), .node = here.value()};
}

std::int64_t well_beside(const DeviceKey& key, const std::vector<std::string>& workloads, const World& world) {
  const auto is_theirs = [&](const DeviceKey& device) {
    return std::ranges::any_of(workloads_on(device, world),
                               [&](const auto& one) { return std::ranges::count(workloads, one) > 0; });
  };
  std::map<DeviceKey, bool> cards;  // whether it is well
  for (const auto* place : world.held_cards().places_beside(key)) {
    for (const auto& held : place->keys()) {
      auto& is_well = cards.try_emplace(world.card_of(held), true).first->second;
      const auto* state = world.tracker().find(held);
      is_well = is_well && state->health != k8s::Health::Unhealthy && !is_theirs(held);
    }
  }
  return std::ranges::count(cards | std::views::values, true);
}

std::optional<WallTime> vouched_until(const k8s::Pod& pod, const World& world, WallTime now) {
  std::optional<WallTime> latest;
  const auto* at = &pod.meta;
  for (int depth = 0; depth <= kMostOwners && at != nullptr; ++depth) {
    if (const auto said = k8s::find(at->annotations, kAcknowledgeAnnotation)) {
      const auto until = operator_time(*said, now);
      if (until) latest = std::max(latest.value_or(*until), *until);
    }
    if (!at->controller || !is_watched(*at->controller)) break;
    at = world.owner(pod.meta.ns, at->controller->uid);
  }
  return latest;
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
