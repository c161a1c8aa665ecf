#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// The largest limit that the API knows; the Job controller never reaches it. **Source:** batch/v1, seen on 1.37.1:
/// backoffLimit of a Job with backoffLimitPerIndex.
inline constexpr std::int64_t kLimitless = 2147483647;

/// Whether a Job gets the retry back that the loss of one of its pods takes.
struct CreditCase {
  enum class Kind : std::uint8_t {
    None,             ///< No Job, or the Job is over or being deleted: nothing to do.
    NotNeeded,        ///< The loss costs the Job nothing.
    AwaitsCondition,  ///< The loss costs nothing once our condition is seen on the pod.
    NotCreditable,    ///< The loss cannot be made good.
    Needed,           ///< A credit is to be given.
    Given,            ///< The Job shows the credit of this pod.
  };
  Kind kind = Kind::None;
  Reason reason = Reason::CreditNotNeeded;  ///< Of NotNeeded and NotCreditable.
  std::string message;                      ///< Of NotNeeded and NotCreditable.
  MonoTime seen_at;                         ///< Of Given: since when this process has seen it.
};

/// The Job of a pod; null if it has none, or it is not known.
[[nodiscard]] const JobRecord* job_of(const k8s::Pod& pod, const World& world);

/// Why this Job's retries are not ours to touch: another controller or owner, Kueue, suspended; none: they are.
[[nodiscard]] std::optional<CreditCase> not_ours(const k8s::Job& job);

/// That the Job's podFailurePolicy would ignore the loss once our condition is seen on the pod: it is worth waiting for
/// it, unless it cannot be written.
[[nodiscard]] bool awaits_condition(const AffectedPod& affected, const k8s::Job& job, const PlanInput& input);

/// That the pod's index has no retry left, in words. **Source:** seen on 1.37.1: the per-index limit is immutable.
[[nodiscard]] std::optional<std::string> lost_index(const k8s::Pod& pod, const k8s::Job& job);

/// The case of a pod that runs and may be evicted or die. Looks at the Job's policy, owner, limits and earlier credits.
/// A podFailurePolicy that ignores the loss makes it cost nothing whoever owns the Job.
/// **Source:** the rules of kubernetes-tried on 1.37.1: what a Job counts, what can be raised, what ends the whole Job.
/// Of a pod that goes with another no condition of ours is waited for: it gets none.
[[nodiscard]] CreditCase credit_case(const AffectedPod& affected, const JobRecord& record, const JobRetryRules& rules,
                                     const PlanInput& input);

/// The case of a pod that has failed.
[[nodiscard]] CreditCase credit_case_of_dead(const k8s::Pod& pod, const JobRecord& record, const JobRetryRules& rules);

/// Why this pod may not be evicted yet, or at all, as far as its Job's retry goes; none if nothing of the kind stands
/// in the way. The credit must have been seen on the Job for `jobRetry.settle`: the Job controller reads Jobs and pods
/// through separate caches, and with an old limit it kills healthy pods of the Job (seen on 1.37.1).
[[nodiscard]] std::optional<HoldReason> held_for_credit(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc
