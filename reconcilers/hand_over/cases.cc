#include "reconcilers/hand_over/cases.h"

#include <algorithm>

#include <fmt/format.h>

#include "domain/policy/config_duration.h"

namespace dhc::hand_over {

namespace {

/// Why the device is a ground by these rules, and until when; nothing: it is none.
std::optional<Ground> ground_of(const DeviceRecord& record, const HandOverRules& rules, const Now& now) {
  if (!record.is_open() || record.is_acknowledged()) return std::nullopt;
  if (rules.on_quarantine && record.is_quarantined()) return Ground{.record = &record, .why = "quarantined"};
  if (rules.incidents == 0) return std::nullopt;
  const auto& past = record.past.incidents;
  const auto wanted = static_cast<std::size_t>(rules.incidents);
  if (past.size() < wanted) return std::nullopt;
  const auto ends = past[past.size() - wanted].at + rules.within;
  if (now.wall >= ends) return std::nullopt;
  return Ground{.record = &record,
                .why = fmt::format("{} {} within {}", rules.incidents, rules.incidents == 1 ? "incident" : "incidents",
                                   format_duration(rules.within)),
                .until = now.mono + std::chrono::ceil<Millis>(ends - now.wall)};
}

}  // namespace

Cases find_cases(const PlanInput& input) {
  Cases cases;
  if (std::ranges::none_of(input.policy.policies, [](const auto& rules) { return rules.hand_over.has_value(); }))
    return cases;
  for (const auto& [key, record] : input.incidents.records()) {
    if (!record.is_open() || !key.is_device()) continue;
    const auto* policy = policy_of(record, input.policy);
    if (policy == nullptr || !policy->hand_over || !policy->hand_over->condition) continue;
    if (effective_mode(policy, input.policy) == Mode::Off) continue;
    auto ground = ground_of(record, *policy->hand_over, input.now);
    if (!ground) continue;
    // Its driver may have withdrawn it: what has fallen off the bus is nowhere by the World.
    const auto node = node_of(record, input.world);
    if (input.world.node(node) == nullptr) continue;
    ground->policy = policy;
    cases[node][policy->hand_over->condition->type].push_back(*std::move(ground));
  }
  return cases;
}

const DevicePolicy* policy_with(const Policy& policy, const std::string& type) {
  const auto found = std::ranges::find_if(policy.policies, [&](const DevicePolicy& rules) {
    return rules.hand_over && rules.hand_over->condition && rules.hand_over->condition->type == type;
  });
  return found == policy.policies.end() ? nullptr : &*found;
}

std::set<std::string> nodes_with(const World& world, const DeviceKey& key) {
  std::set<std::string> names;
  if (key.source == DeviceKey::Source::Dra) {
    const auto& pools = world.inventory().pools();
    for (auto at = pools.lower_bound({key.scope, {}}); at != pools.end() && at->first.first == key.scope; ++at) {
      if (!at->second.node.empty()) names.insert(at->second.node);
    }
    return names;
  }
  for (const auto& [name, node] : world.nodes()) {
    const auto* book = world.resource_book(name, key.scope);
    const auto capacity = k8s::amount_of(node.capacity, key.scope);
    if (capacity > 0 || (book != nullptr && book->largest_capacity > 0)) names.insert(name);
  }
  return names;
}

}  // namespace dhc::hand_over
