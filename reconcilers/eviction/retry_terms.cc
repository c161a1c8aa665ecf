#include "reconcilers/eviction/retry_terms.h"

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "domain/contract/job_record.h"
#include "domain/contract/names.h"
#include "reconcilers/shared/failure_outlook.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/job_end.h"
#include "reconcilers/shared/retry_rules.h"

namespace dhc::eviction {

namespace {

/// Why the credit does not stand in what was read; none: it stands.
std::optional<std::string> credit_missing(const k8s::Job& fresh, const std::string& pod_uid) {
  const auto text = k8s::find(fresh.meta.annotations, kRetryCreditsAnnotation);
  const auto credits = text ? parse_retry_credits(*text) : RetryCredits{};
  const auto* credit = credits ? credits->find(pod_uid) : nullptr;
  if (credit == nullptr || credit->state == RetryCredit::State::Unspent) return "does not have this pod's credit";
  if (fresh.backoff_limit >= credits->limit) return std::nullopt;
  return fmt::format("has backoffLimit {}, and {} with this pod's credit", fresh.backoff_limit, credits->limit);
}

}  // namespace

std::optional<RetryTerms> retry_terms_of(const AffectedPod& affected, const PlanInput& input, LeavingPods& leaving) {
  const auto& pod = affected.pod();
  const auto* record = job_of(pod, input.world);
  if (record == nullptr || k8s::is_ending(record->job) || record->job.meta.deletion) return std::nullopt;
  const auto& job = record->job;
  const auto rules = retry_rules(affected, input);
  RetryTerms terms{.job_name = job.meta.name, .job_uid = job.meta.uid, .job_version = job.meta.resource_version};
  if (rules.crediting) {
    const auto credit = credit_case(affected, *record, *rules.crediting, input);
    if (credit.kind == CreditCase::Kind::Given) {
      terms.has_credit = record->credits.find(pod.meta.uid) != nullptr;
      if (!terms.has_credit) terms.limit = record->removed.at(pod.meta.uid).limit;
      return terms;
    }
    if (credit.kind != CreditCase::Kind::NotCreditable) return std::nullopt;
  }
  const bool counts = rules.crediting && rules.crediting->not_creditable == JobRetryRules::NotCreditable::HoldIfFatal;
  if (rules.holding == nullptr && !counts) return std::nullopt;
  if (outlook_of_eviction(job, pod, false).counts == Counts::Never || job.backoff_limit >= kLimitless)
    return std::nullopt;
  terms.limit = job.backoff_limit;
  terms.uncounted = uncounted_losses(pod, *record, input, leaving);
  return terms;
}

Status judge_retry(const EvictPod& action, const k8s::Job& fresh) {
  const auto& terms = *action.retry;
  std::optional<std::string> found;
  if (fresh.meta.uid != terms.job_uid) {
    found = "is another one now";
  } else if (k8s::is_ending(fresh) || fresh.meta.deletion) {
    return {};
  } else if (terms.has_credit) {
    found = credit_missing(fresh, action.uid);
  } else if (terms.limit && fresh.backoff_limit < *terms.limit) {
    found = fmt::format("has backoffLimit {}, and {} was seen", fresh.backoff_limit, *terms.limit);
  } else if (terms.uncounted && fresh.failed + fresh.uncounted + *terms.uncounted >= fresh.backoff_limit) {
    found = fmt::format("has lost {} pods of the {} that its backoffLimit bears, and {} more are going",
                        fresh.failed + fresh.uncounted, fresh.backoff_limit, *terms.uncounted);
  }
  if (!found) return {};
  return fail(ErrorKind::Outdated, fmt::format("a fresh read shows that Job {} {}: pod {} was not evicted",
                                               terms.job_name, *found, action.name));
}

}  // namespace dhc::eviction
