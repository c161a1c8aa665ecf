#include "domain/findings/policy_coverage.h"

#include <algorithm>

#include "domain/cluster/world.h"
#include "domain/findings/match_device.h"

namespace dhc {

namespace {

bool is_on_its_nodes(const Match& match, const World& world, const std::string& name) {
  static constexpr k8s::StringMap kNone{};
  const auto* node = world.node(name);
  return match.nodes.matches(node == nullptr ? kNone : node->meta.labels);
}

std::int64_t known_devices(const Match& match, const World& world) {
  std::int64_t count = 0;
  for (const auto& [name, pool] : world.inventory().pools()) {
    if (!names_device(match, DeviceKey::dra(name.first, name.second, {}))) continue;
    if (is_on_its_nodes(match, world, pool.node)) count += static_cast<std::int64_t>(pool.devices.size());
  }
  for (const auto& [node, book] : world.books()) {
    if (!is_on_its_nodes(match, world, node)) continue;
    for (const auto& [resource, entry] : book.resources()) {
      if (names_device(match, DeviceKey::plugin(node, resource, {})))
        count += std::max(entry.capacity, std::int64_t{0});
    }
  }
  return count;
}

std::int64_t held_devices(const Match& match, const World& world) {
  return std::ranges::count_if(world.tracker().devices(), [&](const auto& entry) {
    const auto& [key, state] = entry;
    return names_device(match, key) && std::ranges::any_of(state.holders, [&](std::string_view uid) {
             const auto* record = world.pod(uid);
             return record != nullptr && !selector_misfit(match, world, record->pod, key);
           });
  });
}

}  // namespace

std::vector<PolicyCoverage> coverage_of(const World& world, const Policy& policy) {
  std::vector<PolicyCoverage> coverage;
  for (const auto& one : policy.policies) {
    coverage.push_back({.policy = one.name,
                        .mode = effective_mode(&one, policy),
                        .devices = known_devices(one.match, world),
                        .held = held_devices(one.match, world)});
  }
  return coverage;
}

}  // namespace dhc
