#include "k8s-client/model/disruption_budget.h"

#include <algorithm>

namespace dhc::k8s {

namespace {

bool is_met(const LabelRequirement& requirement, const StringMap& labels) {
  using enum LabelRequirement::Operator;
  const auto value = find(labels, requirement.key);
  const bool is_named = value && std::ranges::find(requirement.values, *value) != requirement.values.end();
  switch (requirement.op) {
    case In:
      return is_named;
    case NotIn:
      return !is_named;
    case Exists:
      return value.has_value();
    case DoesNotExist:
      return !value.has_value();
    case Unknown:
      break;
  }
  return true;
}

bool is_ready(const Pod& pod) {
  const auto found = std::ranges::find(pod.conditions, kReadyCondition, &Condition::type);
  return found != pod.conditions.end() && found->status == "True";
}

}  // namespace

bool selects(const DisruptionBudget& budget, const Pod& pod) {
  return budget.selector && budget.meta.ns == pod.meta.ns &&
         std::ranges::all_of(*budget.selector, [&](const auto& one) { return is_met(one, pod.meta.labels); });
}

bool asks_budgets(const Pod& pod) {
  return (pod.phase == PodPhase::Running || pod.phase == PodPhase::Unknown) && !pod.meta.deletion;
}

bool spends(const DisruptionBudget& budget, const Pod& pod) {
  if (is_ready(pod)) return true;
  if (budget.always_allows_unhealthy) return false;
  return budget.current_healthy < budget.desired_healthy || budget.desired_healthy == 0;
}

}  // namespace dhc::k8s
