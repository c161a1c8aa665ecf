#include "reconcilers/shared/job_end.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/shared/failure_outlook.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/retry_rules.h"

namespace dhc {

namespace {

/// The Job's own watch may show a failure later than the pod's does.
constexpr Millis kCountedLate = kUnseen;

/// Why a loss would end the Job, and until when if time alone may show that it would not.
struct End {
  std::string why;
  std::optional<MonoTime> until = {};
};

/// Losses of the Job that it may not have counted yet.
struct Uncounted {
  std::int64_t going = 0;
  std::int64_t ended = 0;
  std::int64_t promised = 0;      ///< To pods that run and are to go, each with a credit of its own.
  std::optional<MonoTime> until;  ///< When the first that has ended is counted for sure.

  [[nodiscard]] std::int64_t all() const { return going + ended + promised; }
};

Uncounted uncounted(const k8s::Pod& pod, const JobRecord& record, const PlanInput& input, LeavingPods& leaving) {
  const auto& job = record.job;
  const auto& world = input.world;
  const auto others = leaving.of(record, pod.meta.uid);
  Uncounted found{.going = others.going, .ended = 0, .promised = others.promised, .until = {}};
  const auto ends = [&](std::optional<MonoTime> counted_at) {
    if (counted_at && input.now.mono >= *counted_at) return;
    ++found.ended;
    if (counted_at && (!found.until || *counted_at < *found.until)) found.until = counted_at;
  };
  const auto& lost_pods = world.lost_pods_of(job);
  for (const auto& [uid, lost] : lost_pods) {
    if (uid != pod.meta.uid && outlook_of_loss(job, lost.end, lost.was_seen) != Counts::Never)
      ends(lost.at + kCountedLate);
  }
  // Of a pod of which this process knows nothing else: it went while another led.
  const auto began = input.requests.began_at();
  for (const auto& credit : record.credits.credits) {
    const bool is_known = world.pod(credit.pod_uid) != nullptr || world.endings().contains(credit.pod_uid) ||
                          lost_pods.contains(credit.pod_uid);
    if (credit.state != RetryCredit::State::Given || is_known) continue;
    auto counted_at = shown_as_counted_at(record, credit, world);
    if (!counted_at && began) counted_at = began->mono + kCountedLate;
    ends(counted_at);
  }
  return found;
}

std::optional<End> end_by(const k8s::Pod& pod, const JobRecord& record, const PlanInput& input, LeavingPods& leaving) {
  const auto& job = record.job;
  if (outlook_of_eviction(job, pod, false).counts == Counts::EndsTheJob) {
    return End{.why = "a podFailurePolicy rule would end it, or the pod's index"};
  }
  if (auto index = lost_index(pod, job)) return End{.why = std::move(*index)};
  // With a limit for each index the Job has one only if somebody wrote it.
  if (job.backoff_limit >= kLimitless) return std::nullopt;
  const auto others = uncounted(pod, record, input, leaving);
  const auto failed = job.failed + job.uncounted;
  if (failed + others.all() < job.backoff_limit) return std::nullopt;
  auto why = fmt::format("backoffLimit is {}, {} of its pods have failed and {} more are going", job.backoff_limit,
                         failed, others.going + others.ended);
  if (others.promised > 0) why += fmt::format(", and {} retries are for other pods on bad devices", others.promised);
  return End{.why = std::move(why), .until = others.until};
}

/// Why the pod is held that no policy credits, or whose credit cannot be given.
HoldReason hold_of(const End& end, const k8s::Job& job, const RetryRules& rules,
                   const std::optional<CreditCase>& credit) {
  auto words = fmt::format("the loss would end Job {}: {}", job.meta.name, end.why);
  if (rules.holding == nullptr && credit) {
    return {
        .reason = Reason::NotCreditable,
        .message = fmt::format("{}; {}; jobRetry.whenNotCreditable: Evict evicts all the same", words, credit->message),
        .until = end.until};
  }
  return {.reason = Reason::WouldEndJob,
          .message = fmt::format("{}; policy {} gives no retry back: jobRetry: {{}} does, jobRetry: {{credit: false, "
                                 "whenNotCreditable: Evict}} evicts all the same",
                                 words, rules.holding->name),
          .until = end.until};
}

}  // namespace

std::int64_t uncounted_losses(const k8s::Pod& pod, const JobRecord& record, const PlanInput& input,
                              LeavingPods& leaving) {
  return uncounted(pod, record, input, leaving).all();
}

std::optional<MonoTime> shown_as_counted_at(const JobRecord& record, const RetryCredit& credit, const World& world) {
  const auto ending = world.endings().find(credit.pod_uid);
  if (ending != world.endings().end()) return ending->second.at.mono + kCountedLate;
  const auto seen = record.credit_seen.find(credit.pod_uid);
  if (seen == record.credit_seen.end()) return std::nullopt;
  return seen->second.pod_went_at.value_or(seen->second.at) + kCountedLate;
}

std::optional<HoldReason> held_for_job_end(const AffectedPod& affected, const PlanInput& input, LeavingPods& leaving) {
  const auto& pod = affected.pod();
  const auto* record = job_of(pod, input.world);
  if (record == nullptr || k8s::is_ending(record->job) || record->job.meta.deletion) return std::nullopt;
  const auto rules = retry_rules(affected, input);
  std::optional<CreditCase> credit;
  if (rules.crediting) credit = credit_case(affected, *record, *rules.crediting, input);
  if (credit && credit->kind != CreditCase::Kind::NotCreditable) return std::nullopt;  // the loss is paid for
  const bool holds = rules.crediting && rules.crediting->not_creditable == JobRetryRules::NotCreditable::HoldIfFatal;
  if (rules.holding == nullptr && !holds) return std::nullopt;
  const auto& job = record->job;
  if (outlook_of_eviction(job, pod, false).counts == Counts::Never) return std::nullopt;
  if (awaits_condition(affected, job, input)) {
    // Nothing is written in observe mode: what would be done next is said as if it were.
    if (affected.mode != Mode::Enforce) return std::nullopt;
    return HoldReason{.reason = Reason::WaitingForCondition,
                      .message = "the Job's podFailurePolicy looks for our condition, which is not seen on the pod yet",
                      .until = {}};
  }
  const auto end = end_by(pod, *record, input, leaving);
  if (!end) return std::nullopt;
  return hold_of(*end, job, rules, credit);
}

}  // namespace dhc
