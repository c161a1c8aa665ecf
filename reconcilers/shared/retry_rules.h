#pragma once
#include <optional>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// How a Job is treated that loses this pod: the strictest of what the policies say that cover any of the pod's
/// devices, because the pod leaves all of them at once.
struct RetryRules {
  /// The loss is credited so: the fewest retries, the longest wait, the strictest `whenNotCreditable`. None: no policy
  /// gives a retry back.
  std::optional<JobRetryRules> crediting;
  /// A policy that gives no retry back (`jobRetry` is absent, or says `credit: false`) and does not say
  /// `whenNotCreditable: Evict`: a Job that the loss would end is held. Null: there is none.
  const DevicePolicy* holding = nullptr;
};

/// The rules for this affected pod. A policy counts if its mode is at least that of the affected pod's own,
/// and it evicts or has `jobRetry`; for a device in a state that a policy names that policy is meant, for any other the
/// first whose selectors fit.
[[nodiscard]] RetryRules retry_rules(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc
