#include "reconcilers/hand_over/cases.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "domain/history/incident_id.h"
#include "domain/policy/config_duration.h"

namespace dhc::hand_over {

namespace {

/// Why the device is a ground by these rules; nothing: it is none. Time alone makes none of it: whoever repairs the
/// node would be told to stop while the device is bad.
std::optional<Ground> ground_of(const DeviceRecord& record, const HandOverRules& rules) {
  if (!record.is_open() || record.is_acknowledged()) return std::nullopt;
  if (rules.on_quarantine && record.is_quarantined()) return Ground{.record = &record, .why = "quarantined"};
  if (rules.incidents == 0) return std::nullopt;
  const auto& past = record.past.incidents;
  const auto wanted = static_cast<std::size_t>(rules.incidents);
  if (past.size() < wanted) return std::nullopt;
  if (past.back().at - past[past.size() - wanted].at >= rules.within) return std::nullopt;
  return Ground{.record = &record,
                .why = fmt::format("{} {} within {}", rules.incidents, rules.incidents == 1 ? "incident" : "incidents",
                                   format_duration(rules.within))};
}

/// Each ground, by the key of its device, with the node's name.
template <class Take>
void each_ground(const PlanInput& input, Take take) {
  if (std::ranges::none_of(input.policy.policies, [](const auto& rules) { return rules.hand_over.has_value(); }))
    return;
  for (const auto& [key, record] : input.incidents.records()) {
    if (!record.is_open() || !key.is_device()) continue;
    const auto* policy = policy_of(record, input.policy);
    if (policy == nullptr || !policy->hand_over) continue;
    if (effective_mode(policy, input.policy) == Mode::Off) continue;
    auto ground = ground_of(record, *policy->hand_over);
    if (!ground) continue;
    ground->policy = policy;
    // Its driver may have withdrawn it: what has fallen off the bus is nowhere by the World.
    take(node_of(record, input.world), *std::move(ground));
  }
}

/// The same for the same rules and node or device, whatever else of the rules changes.
std::string slot_of(const HandOverResource& rules, const std::string& node, const DeviceKey& key) {
  auto text = fmt::format("{}\n{}\n{}\n{}\n{}", rules.api_version, rules.kind, rules.ns, rules.name, node);
  // Replicas of a card are that card: it is not repaired once for each.
  if (rules.per_device)
    text += fmt::format("\n{}\n{}\n{}\n{}", to_string(key.source), key.scope, key.place, card_by_name(key));
  return fmt::format("{:016x}", stable_hash(text));
}

}  // namespace

Cases find_cases(const PlanInput& input) {
  Cases cases;
  each_ground(input, [&](const std::string& node, Ground ground) {
    const auto& condition = ground.policy->hand_over->condition;
    if (condition && input.world.node(node) != nullptr) cases[node][condition->type].push_back(std::move(ground));
  });
  return cases;
}

ObjectCases find_object_cases(const PlanInput& input) {
  ObjectCases cases;
  each_ground(input, [&](const std::string& node, Ground ground) {
    const auto& rules = ground.policy->hand_over->resource;
    if (!rules || node.empty()) return;
    const auto& key = ground.record->key;
    auto& found = cases[slot_of(*rules, node, key)];
    found.node = node;
    if (rules->per_device) found.device = to_string(key);
    found.incidents.insert(incident_id(*ground.record));
    found.grounds.push_back(std::move(ground));
  });
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
