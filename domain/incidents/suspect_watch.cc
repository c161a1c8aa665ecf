#include "domain/incidents/suspect_watch.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/grounds.h"
#include "domain/cluster/node_departure.h"
#include "domain/cluster/running_images.h"
#include "domain/cluster/workload.h"
#include "domain/contract/ground_names.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"
#include "domain/limits/caps.h"

namespace dhc {

namespace {

/// Workloads and images against which anything speaks.
std::set<std::string> known_names(const Suspects& suspects) {
  std::set<std::string> known;
  for (const auto& onset : suspects.onsets()) {
    for (const auto& [workload, share] : onset.workloads) known.insert(workload);
    for (const auto& [image, share] : onset.images) known.insert(image);
  }
  for (const auto& [who, suspicion] : suspects.suspicions()) known.insert(who.first);
  return known;
}

/// With more devices held than so many for each that broke, most who run an image broke none, whoever they are.
constexpr std::int64_t kHeldForEach = 4;

/// Who runs the image and holds devices, pod by pod at each place; of too many to look at, somebody who holds all.
void tell_tenants(const std::string& image, const std::string& scope, const Suspects& suspects, const World& world,
                  WallTime now, const SuspectHearing::IsEnough& is_enough) {
  const auto broken = std::ranges::count_if(suspects.onsets(), [&](const DeviceOnset& onset) {
    return onset.card.scope == scope && onset.images.contains(image);
  });
  if (world.held_cards().count_of(scope, image) > kHeldForEach * broken)
    return (void)is_enough({.workload = {}, .since = WallTime::min(), .share = 1});
  const auto all = static_cast<double>(world.held_cards().count(scope));
  (void)world.held_cards().find_place(scope, image, [&](const HeldCards::Place& place) {
    std::map<std::string, std::set<DeviceKey>> cards;  // by pod
    for (const auto& key : place.keys()) {
      for (const auto& uid : world.tracker().find(key)->holders) cards[uid].insert(world.card_of(key));
    }
    return std::ranges::any_of(cards, [&](const auto& entry) {
      const auto* record = world.pod(entry.first);
      if (record == nullptr || std::ranges::count(image_names_of(record->pod), image) == 0) return false;
      // A time ahead of our clock does not say since when.
      const auto made = record->pod.meta.creation ? world.ours(*record->pod.meta.creation) : WallTime::min();
      return is_enough({.workload = workload_of(record->pod, world),
                        .since = made > now ? WallTime::min() : made,
                        .share = static_cast<double>(entry.second.size()) / all});
    });
  });
}

/// Operators speak for a node, on the node; and what broke before it was made broke on another of its name. Those on
/// which nothing broke are not asked.
template <class Hear>
void hear_of_nodes(const Suspects& suspects, const World& world, WallTime now, const Hear& hear) {
  const auto ask = [&](std::string_view name, WallTime since) {
    const auto* node = world.node(name);
    if (node == nullptr) return;
    const auto tell = [&](WallTime until) {
      if (since <= until) hear(ground_of_node(name), until);
    };
    if (node->meta.creation) tell(std::min(world.ours(*node->meta.creation), now));
    if (!world.annotated_nodes().contains(name)) return;
    const auto said = k8s::find(node->meta.annotations, kAcknowledgeAnnotation);
    if (const auto until = said ? operator_time(*said, now) : std::unexpected(std::string())) tell(*until);
  };
  for (const auto& onset : suspects.onsets()) {
    for (const auto& [ground, share] : onset.grounds) {
      if (const auto node = node_of_ground(ground)) ask(*node, onset.since);
    }
  }
  for (const auto& [who, suspicion] : suspects.suspicions()) {
    if (const auto node = node_of_ground(who.first)) ask(*node, suspicion.since);
  }
}

/// The suspected nodes that have a bad device, held or out of service. Of a release that says nothing: in a large fleet
/// one of its devices is bad at any time, whatever serves it.
void hear_of_grounds(const Suspects& suspects, const IncidentStore& incidents,
                     const std::vector<AffectedPod>& affected_pods, const World& world, SuspectHearing& hearing) {
  std::set<std::string_view> nodes;
  for (const auto& [who, suspicion] : suspects.suspicions()) {
    if (const auto node = node_of_ground(who.first)) nodes.insert(*node);
  }
  if (nodes.empty()) return;
  const auto hear = [&](const DeviceKey& key, const std::string& node) {
    if (!nodes.contains(node)) return;
    OwnerInScope who{ground_of_node(node), key.scope};
    if (suspects.suspicions().contains(who)) hearing.on_bad.insert(std::move(who));
  };
  for (const auto& affected : affected_pods) {
    if (!affected.unknown_now && nodes.contains(affected.pod().node_name.view()))
      hear(affected.key, world.node_of(affected.key));
  }
  for (const auto& [key, record] : incidents.records()) {
    if (record.is_open() && !record.is_acknowledged()) hear(key, node_of(record, world));
  }
}

/// Of more that open at once those that would be kept in the end: what each of them is a part of costs its share of the
/// cluster.
std::vector<DeviceKey> newest_of(const std::set<DeviceKey>& opened, const IncidentStore& incidents) {
  std::vector<DeviceKey> keys(opened.begin(), opened.end());
  if (keys.size() <= Suspects::kMost) return keys;
  std::ranges::sort(keys, std::greater(), [&](const DeviceKey& key) {
    const auto* record = incidents.find(key);
    const auto* facts = record == nullptr ? nullptr : record->incident.facts();
    return std::pair(facts == nullptr ? WallTime::min() : facts->opened_at, key);
  });
  keys.resize(Suspects::kMost);
  return keys;
}

}  // namespace

void note_onsets(Suspects& suspects, const std::set<DeviceKey>& opened, const IncidentStore& incidents,
                 const World& world) {
  for (const auto& key : newest_of(opened, incidents)) {
    const auto* record = incidents.find(key);
    const auto* facts = record == nullptr ? nullptr : record->incident.facts();
    if (facts == nullptr || !key.is_device()) continue;
    // Whoever works on the node makes devices look bad.
    const auto* node = world.node_under(key);
    const auto workloads = workloads_on(key, world);
    if (workloads.empty() || (node != nullptr && why_leaving(*node))) continue;
    DeviceOnset onset{.card = world.card_of(key),
                      .node = world.node_of(key),
                      .at = facts->opened_at,
                      .named_at = named_at(*facts),
                      .since = facts->since,
                      .well = well_beside(key, workloads, world),
                      .workloads = {},
                      .images = {},
                      .grounds = grounds_of(key, facts->since, world)};
    for (const auto& workload : workloads) onset.workloads.emplace(workload, share_of(workload, key, world));
    for (const auto& image : images_on(key, world)) onset.images.emplace(image, share_of_image(image, key, world));
    suspects.note(std::move(onset));
  }
}

SuspectHearing hearing_of(const Suspects& suspects, const IncidentStore& incidents,
                          const std::vector<AffectedPod>& affected_pods, const World& world, const Policy& policy,
                          const Now& now) {
  SuspectHearing hearing{.least = static_cast<std::size_t>(policy.limits.suspect_after),
                         .on_bad = {},
                         .acknowledged = {},
                         .released = cap_release(policy.cap_release, now),
                         .now = now,
                         .tell_tenants = [&, at = now.wall](const auto& image, const auto& scope, const auto& enough) {
                           tell_tenants(image, scope, suspects, world, at, enough);
                         }};
  const auto hear = [&](const std::string& who, WallTime until) {
    auto& latest = hearing.acknowledged.try_emplace(who, until).first->second;
    latest = std::max(latest, until);
  };
  hear_of_nodes(suspects, world, now.wall, hear);
  hear_of_grounds(suspects, incidents, affected_pods, world, hearing);
  // Whoever looks at a suspect may have repaired its device before.
  for (const auto& [who, suspicion] : suspects.suspicions()) {
    for (const auto& workload : workloads_behind(suspects, who, world)) {
      for (const auto* record : pods_of_workload(workload, world)) {
        if (const auto until = vouched_until(record->pod, world, now.wall)) hear(who.first, *until);
      }
    }
  }
  const bool has_owners = suspects.has_owners();
  std::optional<std::set<std::string>> known;  // names of many, and few are vouched for
  for (const auto& affected : affected_pods) {
    const auto until = vouched_until(affected.pod(), world, now.wall);
    if (!until && !has_owners) continue;
    if (until && !known) known = known_names(suspects);
    auto names = image_names_of(affected.pod(), *affected.held_device);
    names.push_back(workload_of(affected.pod(), world));
    for (const auto& name : names) {
      const bool is_suspected = suspects.find(name, affected.key.scope) != nullptr;
      if (is_suspected && !affected.unknown_now) hearing.on_bad.emplace(name, affected.key.scope);
      if (until && known->contains(name)) hear(name, *until);
    }
  }
  return hearing;
}

std::optional<SuspectedAs> suspected_as(const Suspects& suspects, const k8s::Pod& pod, const std::string& scope,
                                        const World& world) {
  if (!suspects.has_owners()) return std::nullopt;
  auto workload = workload_of(pod, world);
  if (const auto* found = suspects.find(workload, scope)) return SuspectedAs{std::move(workload), found};
  for (auto& image : image_names_of(pod)) {
    if (const auto* found = suspects.find(image, scope)) return SuspectedAs{std::move(image), found};
  }
  return std::nullopt;
}

std::vector<std::string> workloads_behind(const Suspects& suspects, const OwnerInScope& who, const World& world) {
  if (is_ground_name(who.first)) return {};
  if (!is_image_name(who.first)) return {who.first};
  std::set<std::string> workloads;
  for (const auto& onset : suspects.onsets()) {
    if (onset.card.scope != who.second || !onset.images.contains(who.first)) continue;
    for (const auto& [workload, share] : onset.workloads) {
      if (!pods_of_workload(workload, world).empty()) workloads.insert(workload);
    }
  }
  return {workloads.begin(), workloads.end()};
}

bool is_with_suspects(const Suspects& suspects, const DeviceKey& key, const World& world) {
  if (!suspects.has_owners()) return false;
  const auto* state = world.tracker().find(key);
  if (state == nullptr) return false;
  bool is_held = false;
  for (const auto& uid : state->holders) {
    const auto* record = world.pod(uid);
    if (record == nullptr) continue;
    if (!suspected_as(suspects, record->pod, key.scope, world)) return false;
    is_held = true;
  }
  return is_held;
}

bool is_full_of_suspects(const Suspects& suspects, std::string_view node, const std::string& scope,
                         const World& world) {
  const auto places = world.held_cards().places_in(node, scope);
  return !places.empty() && std::ranges::all_of(places, [&](const auto* place) {
    return std::ranges::all_of(place->keys(),
                               [&](const DeviceKey& key) { return is_with_suspects(suspects, key, world); });
  });
}

namespace {

std::string words_of_suspected_ground(const std::string& who, const Suspicion& suspicion) {
  if (release_of_ground(who)) {
    return fmt::format(
        "{} is suspected of breaking the devices that it serves: {}; nothing is held or moved because of that: stop "
        "its roll-out, compare it with the revision before, roll it back; said until nothing has broken under it for "
        "24 h, or the caps are released",
        words_of_ground(who), suspicion.evidence);
  }
  return fmt::format(
      "{} is suspected of breaking its devices: {}; nothing is held or moved because of that: before its devices are "
      "replaced one by one, look at what they share (power, PCIe switch, cooling, host memory, the driver there), "
      "drain it or hand it over; said until it has had no bad device for 24 h, or its annotation {} says when it was "
      "looked at",
      words_of_ground(who), suspicion.evidence, kAcknowledgeAnnotation);
}

}  // namespace

std::string words_of_suspicion(const std::string& who, const Suspicion& suspicion) {
  if (is_ground_name(who)) return words_of_suspected_ground(who, suspicion);
  if (is_image_name(who)) {
    return fmt::format(
        "{} is suspected of breaking the devices that its containers hold: {}; no pod that runs it there is moved and "
        "no device of theirs blamed, until they have held no bad device for 24 h, or the annotation {} on one of these "
        "workloads, or on one of their pods, says when it was looked at",
        words_of_image(who), suspicion.evidence, kAcknowledgeAnnotation);
  }
  return fmt::format(
      "{} is suspected of breaking the devices that it holds: {}; its pods are not moved and their devices not blamed, "
      "until it has held no bad device for 24 h, or the annotation {} on it or on one of its pods says when it was "
      "looked at",
      words_of_workload(who), suspicion.evidence, kAcknowledgeAnnotation);
}

}  // namespace dhc
