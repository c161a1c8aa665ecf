#include "domain/brake.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/names.h"

namespace dhc {

namespace {

struct Tally {
  std::set<DeviceKey> devices;
  Moment last;
  bool nodes = false;  // each of them stands for a node
};

/// Until when a person has released the scope's brake: incidents up to then do not count.
std::optional<WallTime> released_until(const World& world, const Policy& policy, const BrakeScope& scope) {
  if (scope.node.empty()) return parse_rfc3339(policy.brake_release);
  const auto* node = world.node(scope.node);
  const auto value = node == nullptr ? std::nullopt : k8s::find(node->meta.annotations, kBrakeReleaseAnnotation);
  return value ? parse_rfc3339(*value) : std::nullopt;
}

std::map<BrakeScope, Tally> tally(const World& world, const Policy& policy, const Now& now) {
  std::map<BrakeScope, Tally> tallies;
  for (const auto& onset : world.tracker().onsets()) {
    if (now.mono - onset.at.mono >= policy.limits.brake_within) continue;
    for (const auto& node : {onset.node, std::string()}) {
      const BrakeScope scope{.scope = onset.key.scope, .node = node};
      const auto released = released_until(world, policy, scope);
      if (released && onset.at.wall <= *released) continue;
      auto& entry = tallies[scope];
      entry.devices.insert(onset.key);
      entry.last = std::max(entry.last, onset.at);
    }
  }
  return tallies;
}

/// Nodes that became black holes count in the cluster alone, against the nodes that have the resource.
std::map<BrakeScope, Tally> tally_holes(const World& world, const Policy& policy, const BlackHoles& holes,
                                        const Now& now) {
  std::map<BrakeScope, Tally> tallies;
  for (const auto& [place, hole] : holes) {
    const auto since = hole.since();
    if (!since || now.mono - since->mono >= policy.limits.brake_within) continue;
    const BrakeScope scope{.scope = place.second, .node = {}};
    const auto released = released_until(world, policy, scope);
    if (released && since->wall <= *released) continue;
    auto& entry = tallies[scope];
    entry.devices.insert(black_hole_key(place.first, place.second));
    entry.last = std::max(entry.last, *since);
    entry.nodes = true;
  }
  return tallies;
}

std::int64_t known_nodes(const World& world, const std::string& resource) {
  return std::ranges::count_if(world.books(), [&](const auto& entry) {
    const auto found = entry.second.resources().find(resource);
    return found != entry.second.resources().end() && found->second.largest_capacity > 0;
  });
}

}  // namespace

std::string to_string(const BrakeScope& scope, const EngagedBrake& brake) {
  if (brake.nodes) {
    return fmt::format("{} of {} nodes with {} reject the pods that they are given", brake.devices, brake.known,
                       scope.scope);
  }
  return fmt::format("{} of {} devices of {} {} became Unhealthy", brake.devices, brake.known, scope.scope,
                     scope.node.empty() ? "in the cluster" : "on node " + scope.node);
}

std::int64_t known_devices(const World& world, const BrakeScope& scope) {
  std::int64_t known = 0;
  std::set<DeviceKey> named;
  for (const auto& [node, book] : world.books()) {
    if (!scope.node.empty() && node != scope.node) continue;
    const auto entry = book.resources().find(scope.scope);
    if (entry != book.resources().end()) known += std::max(entry->second.largest_capacity, entry->second.held.total);
  }
  for (const auto& [key, pool] : world.inventory().pools()) {
    if (key.first != scope.scope || (!scope.node.empty() && pool.node != scope.node)) continue;
    for (const auto& [device, published] : pool.devices) named.insert(DeviceKey::dra(key.first, key.second, device));
  }
  for (const auto& [key, state] : world.tracker().devices()) {
    if (key.source != DeviceKey::Source::Dra || key.scope != scope.scope) continue;
    const auto* holder = state.holders.empty() ? nullptr : world.pod(state.holders.front());
    if (scope.node.empty() || (holder != nullptr && holder->pod.node_name == scope.node)) named.insert(key);
  }
  return known + static_cast<std::int64_t>(named.size());
}

void Brake::observe(const World& world, const Policy& policy, const BlackHoles& holes, const Now& now) {
  const auto& limits = policy.limits;
  const auto of_devices = tally(world, policy, now);
  const auto of_nodes = tally_holes(world, policy, holes, now);
  for (auto& [scope, brake] : engaged_) {
    const auto& tallies = brake.nodes ? of_nodes : of_devices;
    const auto seen = tallies.find(scope);
    if (seen == tallies.end()) continue;
    brake.last_onset = std::max(brake.last_onset, seen->second.last);
    brake.devices = std::max(brake.devices, static_cast<std::int64_t>(seen->second.devices.size()));
  }
  std::erase_if(engaged_, [&](const auto& entry) {
    const auto& [scope, brake] = entry;
    const auto released = released_until(world, policy, scope);
    return now.mono - brake.last_onset.mono >= limits.brake_within || (released && brake.last_onset.wall <= *released);
  });
  for (const auto* tallies : {&of_devices, &of_nodes}) {
    for (const auto& [scope, seen] : *tallies) {
      const auto count = static_cast<std::int64_t>(seen.devices.size());
      if (engaged_.contains(scope) || count < limits.brake_at_least) continue;
      const auto known = std::max(seen.nodes ? known_nodes(world, scope.scope) : known_devices(world, scope), count);
      if (count * 100 <= limits.brake_percent * known) continue;
      engaged_[scope] = {
          .since = moment_of(now), .last_onset = seen.last, .devices = count, .known = known, .nodes = seen.nodes};
    }
  }
}

const std::pair<const BrakeScope, EngagedBrake>* Brake::holding(const DeviceKey& key, const std::string& node) const {
  for (const auto& place : {node, std::string()}) {
    const auto found = engaged_.find({.scope = key.scope, .node = place});
    if (found != engaged_.end()) return &*found;
  }
  return nullptr;
}

std::optional<MonoTime> Brake::next_change_at(const Limits& limits) const {
  std::optional<MonoTime> next;
  for (const auto& [scope, brake] : engaged_) {
    const MonoTime at = brake.last_onset.mono + limits.brake_within;
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace dhc
