#include "reconcilers/shared/card_taints.h"

#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"

namespace dhc {

bool keeps_off(const k8s::DeviceTaintRule* rule) {
  return rule != nullptr && is_our_rule(*rule) && !rule->meta.deletion && rule->taint.effect == "NoSchedule" &&
         !changed_by_other(*rule);
}

bool speaks_for_card(const PlanInput& input, const DeviceKey& key) {
  const auto* record = input.incidents.find(key);
  if (record == nullptr || !record->is_open() || record->is_acknowledged() || record->ours.rule.is_leaving()) {
    return false;
  }
  const auto* policy = policy_of(*record, input.policy);
  if (policy != nullptr && !(makes_rules(*policy) && policy->taint->partitions)) return false;
  const auto& inventory = input.world.inventory();
  return keeps_off(inventory.rule_named_for(key)) || inventory.unschedulable_because(key, inventory.rule_name_for(key));
}

std::vector<DeviceKey> open_on_card(const PlanInput& input, const DeviceKey& key) {
  const auto& inventory = input.world.inventory();
  auto others = inventory.others_on_card(key);
  if (others.empty() || !speaks_for_card(input, key)) return {};
  const auto& record = *input.incidents.find(key);
  const auto* policy = policy_of(record, input.policy);
  if (policy == nullptr || effective_mode(policy, input.policy) != Mode::Enforce) return {};
  if (enforce_miss(*policy, input.world, key)) return {};
  const auto& let_go = record.ours.let_go;
  std::erase_if(others, [&](const DeviceKey& other) {
    return let_go.contains(other.device) || inventory.rule_named(card_rule_name(other)) != nullptr ||
           inventory.unschedulable_because(other, inventory.rule_name_for(other));
  });
  return others;
}

}  // namespace dhc
