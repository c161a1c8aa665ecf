#include "reconcilers/shared/retry_rules.h"

#include <algorithm>
#include <string_view>

#include "domain/findings/enforcement.h"

namespace dhc {

namespace {

/// Every policy that covers a device of the pod, the affected pod's own first, each once.
std::vector<const DevicePolicy*> policies_of_pod(const AffectedPod& affected, const PlanInput& input) {
  std::vector<const DevicePolicy*> found = {affected.policy};
  const auto& held_devices = affected.record->held_devices;
  if (held_devices.size() < 2) return found;
  const auto add = [&](const DevicePolicy* policy, const DeviceKey& key) {
    if (policy == nullptr || std::ranges::find(found, policy) != found.end()) return;
    if (mode_for(*policy, input.policy, input.world, affected.pod(), key) >= affected.mode) found.push_back(policy);
  };
  for (const auto* other : input.in_focus) {
    if (other->record == affected.record) add(other->policy, other->key);
  }
  // A policy knows devices by driver or resource: one look at each is enough, unless it enforces on a share of them.
  const DeviceKey* last = nullptr;
  for (const auto& held_device : held_devices) {
    if (last != nullptr && last->source == held_device.key.source && last->scope == held_device.key.scope) continue;
    const auto* policy = policy_for(input.world, input.policy, affected.pod(), held_device.key);
    last = policy != nullptr && policy->enforce_on ? nullptr : &held_device.key;
    add(policy, held_device.key);
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
