#include "reconcilers/taint/cards.h"

#include <algorithm>
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
    if (input_.world.inventory().rules().empty()) return;
    if (input_.focus != nullptr && !input_.focus->all) {
      for (const auto& key : input_.focus->devices) look_at(key);
      return;
    }
    for (const auto& [uid, rule] : input_.world.inventory().rules()) {
      if (same_card_as(rule)) look_at(*device_of(rule));
    }
  }

 private:
  void cover(const DeviceRecord& record) {
    if (record.key.source != DeviceKey::Source::Dra || !record.is_open()) return;
    if (input_.world.inventory().others_on_card(record.key).empty()) return;
    // Any of them may lose or get its rule.
    speech_.ask_again(record);
    if (speech_.not_now(record)) return;
    for (const auto& other : open_on_card(input_, record.key)) make(record, other);
  }

  void make(const DeviceRecord& record, const DeviceKey& other) {
    const auto& inventory = input_.world.inventory();
    const auto name = card_rule_name(other);
    if (speech_.held_back(rule_write_key(name), {})) return;
    const auto* own = inventory.rule_named_for(record.key);
    speech_.act(ApplyRule{.name = name,
                          .api_version = inventory.rules_api_version(),
                          .uid = {},
                          .resource_version = {},
                          .driver = other.scope,
                          .pool = other.place,
                          .device_name = other.device,
                          .node = input_.world.node_of(other),
                          .said = std::string(k8s::find(own->meta.annotations, kSaidAnnotation).value_or("")),
                          .effect = "NoSchedule",
                          .policy = record.past.policy,
                          .identity = {},
                          .identity_attribute = {},
                          .since = record.incident.facts()->since,
                          .device = to_string(other),
                          .same_card_as = record.key.device});
  }

  /// Whether the rule that is there for the device, because of another one, is still asked for.
  void look_at(const DeviceKey& key) {
    const auto* rule = input_.world.inventory().rule_named(card_rule_name(key));
    const auto bad = rule == nullptr ? std::nullopt : same_card_as(*rule);
    if (!bad) return;
    speech_.ask_again(key);
    if (rule->meta.deletion || changed_by_other(*rule) || is_asked_for(key, *bad)) return;
    if (input_.policy.mode_cap != Mode::Enforce) return;
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

  [[nodiscard]] bool is_asked_for(const DeviceKey& key, const DeviceKey& bad) const {
    // Nobody says what is on which card while the driver is away.
    if (input_.world.inventory().published(key) == nullptr && speaks_for_card(input_, bad)) return true;
    return std::ranges::any_of(input_.world.inventory().others_on_card(key),
                               [&](const DeviceKey& other) { return speaks_for_card(input_, other); });
  }

  const PlanInput& input_;
  Speech& speech_;
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
