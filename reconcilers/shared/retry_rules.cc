#include "reconcilers/shared/retry_rules.h"

#include <algorithm>
#include <string_view>

namespace dhc {

namespace {

/// Every policy that covers a device of the pod, the exposure's own first, each once.
std::vector<const DevicePolicy*> policies_of_pod(const Exposure& exposure, const Scene& scene) {
  std::vector<const DevicePolicy*> found = {exposure.policy};
  const auto& holdings = exposure.record->holdings;
  if (holdings.size() < 2) return found;
  const auto add = [&](const DevicePolicy* policy) {
    if (policy == nullptr || std::ranges::find(found, policy) != found.end()) return;
    if (effective_mode(policy, scene.policy) >= exposure.mode) found.push_back(policy);
  };
  for (const auto& other : scene.exposures) {
    if (other.record == exposure.record) add(other.policy);
  }
  const DeviceKey* last = nullptr;  // a policy knows devices by driver or resource: one look at each is enough
  for (const auto& holding : holdings) {
    if (last != nullptr && last->source == holding.key.source && last->scope == holding.key.scope) continue;
    last = &holding.key;
    add(policy_for(scene.world, scene.policy, exposure.pod(), holding.key));
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
  all->evict_when_not_creditable = all->evict_when_not_creditable && rules.evict_when_not_creditable;
}

}  // namespace

RetryRules retry_rules(const Exposure& exposure, const Scene& scene) {
  RetryRules rules;
  for (const auto* policy : policies_of_pod(exposure, scene)) {
    if (policy->job_retry && policy->job_retry->credit) {
      join(rules.crediting, *policy->job_retry);
    } else if (policy->evict && rules.holding == nullptr &&
               !(policy->job_retry && policy->job_retry->evict_when_not_creditable)) {
      rules.holding = policy;
    }
  }
  return rules;
}

}  // namespace dhc
