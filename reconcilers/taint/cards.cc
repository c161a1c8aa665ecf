#include "reconcilers/taint/cards.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/card_taints.h"

namespace dhc::taint {

namespace {

class CardPlanner {
 public:
  CardPlanner(const PlanInput& input, Speech& speech) : input_(input), speech_(speech) {}

  void run() {
    for_each_record(input_, [&](const DeviceKey& /*key*/, const DeviceRecord& record) { cover(record); });
    const auto& inventory = input_.world.inventory();
    if (inventory.card_rules().empty()) return;
    if (input_.focus == nullptr || input_.focus->all) {
      for (const auto& [bad, rules] : inventory.card_rules()) look_at_rules_for(bad);
      return;
    }
    for (const auto& key : input_.focus->devices) {
      if (key.source != DeviceKey::Source::Dra) continue;
      look_at_rules_for(key);
      look_at(inventory.rule_named(card_rule_name(key)));
      // Another bad device of the card may have been the last reason for a rule that names the first.
      for (const auto& other : inventory.others_on_card(key)) look_at(inventory.rule_named(card_rule_name(other)));
    }
  }

 private:
  void cover(const DeviceRecord& record) {
    if (!record.is_open()) return;
    const auto open = open_on_card(input_, record.key);
    if (open.empty()) return;
    speech_.ask_again(record);
    if (speech_.not_now(record)) return;
    for (const auto& other : open) make(record, other);
  }

  void make(const DeviceRecord& record, const DeviceKey& other) {
    const auto& inventory = input_.world.inventory();
    const auto name = card_rule_name(other);
    if (speech_.held_back(rule_write_key(name), {}) || speech_.comes_out_otherwise()) return;
    if (speech_.takes_taint() || speech_.takes_trial()) return;
    const auto* own = inventory.rule_named_for(record.key);
    const auto said = own == nullptr ? std::nullopt : k8s::find(own->meta.annotations, kSaidAnnotation);
    speech_.act(ApplyRule{.name = name,
                          .api_version = inventory.rules_api_version(),
                          .uid = {},
                          .resource_version = {},
                          .driver = other.scope,
                          .pool = other.place,
                          .device_name = other.device,
                          .node = input_.world.node_of(other),
                          .said = std::string(said.value_or(std::string_view())),
                          .effect = "NoSchedule",
                          .policy = record.past.policy,
                          .identity = {},
                          .identity_attribute = {},
                          .since = record.incident.facts()->since,
                          .device = to_string(other),
                          .same_card_as = record.key.device});
  }

  void look_at_rules_for(const DeviceKey& bad) {
    for (const auto* rule : input_.world.inventory().rules_for_card_of(bad)) look_at(rule);
  }

  /// Whether the rule that was made because of another device is still asked for.
  void look_at(const k8s::DeviceTaintRule* rule) {
    const auto bad = rule == nullptr ? std::nullopt : same_card_as(*rule);
    if (!bad || !seen_.insert(rule->meta.name).second) return;
    const auto key = *device_of(*rule);
    if (rule->meta.deletion || changed_by_other(*rule) || is_asked_for(key, *bad)) return;
    if (!may_remove(*rule)) return;
    // Until it has been done, whatever else changes.
    speech_.ask_again(key);
    if (is_unsaved(key, *bad)) return;
    if (speech_.held_back(rule_write_key(rule->meta.name), rule->meta.resource_version)) return;
    speech_.act(DeleteRule{.name = rule->meta.name,
                           .api_version = input_.world.inventory().rules_api_version(),
                           .uid = rule->meta.uid,
                           .resource_version = rule->meta.resource_version,
                           .key = key,
                           .device = to_string(key),
                           .policy = std::string(k8s::find(rule->meta.annotations, kPolicyAnnotation).value_or("")),
                           .of_card = true});
  }

  /// The process after us would take its absence for somebody's word, or make again what somebody has let go.
  [[nodiscard]] bool is_unsaved(const DeviceKey& key, const DeviceKey& bad) const {
    auto reasons = input_.world.inventory().others_on_card(key);
    reasons.push_back(bad);
    return std::ranges::any_of(reasons, [&](const DeviceKey& reason) {
      const auto* record = input_.incidents.find(reason);
      return record != nullptr && speech_.unsaved(*record);
    });
  }

  /// What a policy has made that only observes now stays, as the device's own rule does.
  [[nodiscard]] bool may_remove(const k8s::DeviceTaintRule& rule) const {
    if (input_.policy.mode_cap != Mode::Enforce) return false;
    const auto name = k8s::find(rule.meta.annotations, kPolicyAnnotation).value_or(std::string_view());
    const auto found = std::ranges::find(input_.policy.policies, name, &DevicePolicy::name);
    return found == input_.policy.policies.end() || effective_mode(&*found, input_.policy) == Mode::Enforce;
  }

  [[nodiscard]] bool is_asked_for(const DeviceKey& key, const DeviceKey& bad) const {
    const auto& pools = input_.world.inventory().pools();
    const auto pool = pools.find({key.scope, key.place});
    // Nobody says what is on which card while the driver is away, or has not published all of it anew.
    const bool is_whole = pool != pools.end() && pool->second.published && pool->second.awaited.empty();
    if (!is_whole && asks_for(bad, key)) return true;
    return std::ranges::any_of(input_.world.inventory().others_on_card(key),
                               [&](const DeviceKey& other) { return asks_for(other, key); });
  }

  [[nodiscard]] bool asks_for(const DeviceKey& bad, const DeviceKey& other) const {
    return speaks_for_card(input_, bad) && !input_.incidents.find(bad)->ours.let_go.contains(other.device);
  }

  const PlanInput& input_;
  Speech& speech_;
  std::set<std::string> seen_;  // rules, by name
};

}  // namespace

void plan_cards(const PlanInput& input, Speech& speech) { CardPlanner(input, speech).run(); }

std::size_t tainted_with(const PlanInput& input, const DeviceKey& key) {
  const auto& inventory = input.world.inventory();
  const auto others = inventory.others_on_card(key);
  return static_cast<std::size_t>(std::ranges::count_if(
      others, [&](const DeviceKey& other) { return keeps_off(inventory.rule_named(card_rule_name(other))); }));
}

}  // namespace dhc::taint
