#include "domain/incidents/node_case.h"

#include <algorithm>

#include "domain/findings/enforcement.h"

namespace dhc {

bool needs_node_taint(const World& world, const DeviceKey& key) {
  return key.source != DeviceKey::Source::Dra || world.inventory().rules_api_version().empty();
}

namespace {

/// How many devices of each case's resource or driver its node has. One walk, whatever the number of cases.
void count_known(const World& world, NodeCases& cases) {
  if (cases.empty()) return;
  const auto wanted = [&](const std::string& node, const std::string& scope) {
    const auto found = cases.find({node, scope});
    return found != cases.end() && found->second.policy->taint->node;
  };
  for (auto& [place, found] : cases) {
    if (!wanted(place.first, place.second)) continue;
    const auto* book = world.resource_book(place.first, place.second);
    if (book != nullptr) found.known = std::max(book->largest_capacity, book->held.total);
  }
  const bool has_driver = std::ranges::any_of(cases, [](const auto& entry) {
    return std::ranges::any_of(entry.second.bad,
                               [](const auto* record) { return record->key.source == DeviceKey::Source::Dra; });
  });
  if (!has_driver) return;
  for (const auto& [key, pool] : world.inventory().pools()) {
    if (pool.node.empty() || !wanted(pool.node, key.first)) continue;
    cases.at({pool.node, key.first}).known += static_cast<std::int64_t>(pool.devices.size());
  }
}

bool is_enough(const TaintRules& taint, std::int64_t bad, std::int64_t known) {
  return taint.node && bad >= taint.node_at_least_devices && bad * 100 >= taint.node_at_least_percent * known;
}

/// How many of its bad devices the policy may act for. One that nobody holds now speaks for no namespace and against
/// none.
std::int64_t count_enforced(const NodeCase& found, const World& world) {
  std::int64_t named = 0;
  std::int64_t unheld = 0;
  for (const auto* record : found.bad) {
    const auto miss = enforce_miss(*found.policy, world, record->key);
    if (!miss) ++named;
    if (miss == EnforceMiss::Nobody) ++unheld;
  }
  return named == 0 ? 0 : named + unheld;
}

}  // namespace

NodeCases find_node_cases(const World& world, const Policy& policy, const IncidentStore& incidents,
                          const Focus* focus) {
  NodeCases cases;
  const auto mode_of = [&](const DevicePolicy& rules) { return effective_mode(&rules, policy); };
  const auto before = [&](const DevicePolicy& a, const DevicePolicy& b) {
    const auto rank = [&](const DevicePolicy& rules) {
      return (rules.taint->node ? 0 : 2) + (mode_of(rules) == Mode::Enforce ? 0 : 1);
    };
    return rank(a) != rank(b) ? rank(a) < rank(b) : &a < &b;  // they are sorted by priority
  };
  for_each_in(focus, incidents.records(), [&](const DeviceKey& key, const DeviceRecord& record) {
    if (!record.is_open() || record.is_acknowledged() || !needs_node_taint(world, key)) return;
    if (!key.is_device()) return;
    const auto* rules = policy_of(record, policy);
    const auto node = world.node_of(key);
    if (rules == nullptr || !rules->taint || node.empty()) return;
    auto& found = cases[{node, key.scope}];
    found.bad.push_back(&record);
    if (found.policy == nullptr || before(*rules, *found.policy)) found.policy = rules;
  });
  count_known(world, cases);
  for (auto& [place, found] : cases) {
    const auto& taint = *found.policy->taint;
    const auto bad = static_cast<std::int64_t>(found.bad.size());
    found.mode = mode_of(*found.policy);
    found.known = std::max(found.known, bad);
    found.enough = is_enough(taint, bad, found.known);
    if (found.mode != Mode::Enforce || !found.policy->enforce_on) continue;
    found.observed = !is_enough(taint, count_enforced(found, world), found.known);
    if (found.observed) found.mode = Mode::Observe;
  }
  return cases;
}

}  // namespace dhc
