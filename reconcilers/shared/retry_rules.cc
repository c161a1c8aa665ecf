#include "reconcilers/shared/retry_rules.h"

#include <algorithm>
#include <string_view>

namespace dhc {

namespace {

/// Every policy that covers a device of the pod, the affected pod's own first, each once.
std::vector<const DevicePolicy*> policies_of_pod(const AffectedPod& affected, const PlanInput& input) {
  std::vector<const DevicePolicy*> found = {affected.policy};
  const auto& held_devices = affected.record->held_devices;
  if (held_devices.size() < 2) return found;
  const auto add = [&](const DevicePolicy* policy) {
    if (policy == nullptr || std::ranges::find(found, policy) != found.end()) return;
    if (effective_mode(policy, input.policy) >= affected.mode) found.push_back(policy);
  };
  for (const auto* other : input.in_focus) {
    if (other->record == affected.record) add(other->policy);
  }
  const DeviceKey* last = nullptr;  // a policy knows devices by driver or resource: one look at each is enough
  for (const auto& held_device : held_devices) {
    if (last != nullptr && last->source == held_device.key.source && last->scope == held_device.key.scope) continue;
    last = &held_device.key;
    add(policy_for(input.world, input.policy, affected.pod(), held_device.key));
  }
  return found;
}

void join(std::optional<JobRetryRules>& all, const JobRetryRules& rules) {
  if (!all) {
    all = rules;
    return;
  }
  all->max_per_job = std::min(all->max_per_job, rules.max_per_job);
  all->settle = std::max(all->settle, rules.settle);
  all->not_creditable = std::max(all->not_creditable, rules.not_creditable);
}

}  // namespace

RetryRules retry_rules(const AffectedPod& affected, const PlanInput& input) {
  RetryRules rules;
  for (const auto* policy : policies_of_pod(affected, input)) {
    if (policy->job_retry && policy->job_retry->credit) {
      join(rules.crediting, *policy->job_retry);
    } else if (policy->evict && rules.holding == nullptr &&
               !(policy->job_retry && policy->job_retry->not_creditable == JobRetryRules::NotCreditable::Evict)) {
      rules.holding = policy;
    }
  }
  return rules;
}

}  // namespace dhc
