#include "domain/incidents/node_case.h"

#include <algorithm>
#include <set>

#include "domain/findings/enforcement.h"

namespace dhc {

bool needs_node_taint(const World& world, const DeviceKey& key) {
  return key.source != DeviceKey::Source::Dra || world.inventory().rules_api_version().empty();
}

namespace {

/// How many cards of each case's resource or driver its node has. One walk, whatever the number of cases.
void count_known(const World& world, NodeCases& cases) {
  if (cases.empty()) return;
  const auto wanted = [&](const std::string& node, const std::string& scope) {
    const auto found = cases.find({node, scope});
    return found != cases.end() && found->second.policy->taint->node;
  };
  for (auto& [place, found] : cases) {
    if (!wanted(place.first, place.second)) continue;
    const auto* book = world.resource_book(place.first, place.second);
    if (book != nullptr) found.known = book->largest_known();
  }
  const bool has_driver = std::ranges::any_of(cases, [](const auto& entry) {
    return std::ranges::any_of(entry.second.bad,
                               [](const auto* record) { return record->key.source == DeviceKey::Source::Dra; });
  });
  if (!has_driver) return;
  for (const auto& [key, pool] : world.inventory().pools()) {
    if (pool.node.empty() || !wanted(pool.node, key.first)) continue;
    cases.at({pool.node, key.first}).known += pool.cards;
  }
}

bool is_enough(const TaintRules& taint, std::int64_t bad, std::int64_t known) {
  return taint.node && bad >= taint.node_at_least_devices && bad * 100 >= taint.node_at_least_percent * known;
}

/// How many of its bad cards the policy may act for. A device that nobody holds now speaks for no namespace and against
/// none.
std::int64_t count_enforced(const NodeCase& found, const World& world) {
  bool is_named = false;
  std::set<DeviceKey> cards;
  for (const auto* record : found.bad) {
    const auto miss = enforce_miss(*found.policy, world, record->key);
    is_named = is_named || !miss;
    if (!miss || miss == EnforceMiss::Nobody) cards.insert(world.card_of(record->key));
  }
  return is_named ? static_cast<std::int64_t>(cards.size()) : 0;
}

std::int64_t count_cards(const NodeCase& found, const World& world) {
  std::set<DeviceKey> cards;
  for (const auto* record : found.bad) cards.insert(world.card_of(record->key));
  return static_cast<std::int64_t>(cards.size());
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
    found.bad_cards = count_cards(found, world);
    found.mode = mode_of(*found.policy);
    found.known = std::max(found.known, found.bad_cards);
    found.enough = is_enough(taint, found.bad_cards, found.known);
    if (found.mode != Mode::Enforce || !found.policy->enforce_on) continue;
    found.observed = !is_enough(taint, count_enforced(found, world), found.known);
    if (found.observed) found.mode = Mode::Observe;
  }
  return cases;
}

}  // namespace dhc
