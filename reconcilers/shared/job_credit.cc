#include "reconcilers/shared/job_credit.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/contract/names.h"
#include "domain/findings/pauses.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/failure_outlook.h"
#include "reconcilers/shared/retry_rules.h"

namespace dhc {

namespace {

using Kind = CreditCase::Kind;

CreditCase not_creditable(Reason reason, std::string message) {
  return {.kind = Kind::NotCreditable, .reason = reason, .message = std::move(message), .seen_at = {}};
}

CreditCase not_needed(std::string message) {
  return {.kind = Kind::NotNeeded, .reason = Reason::CreditNotNeeded, .message = std::move(message), .seen_at = {}};
}

std::string name_of(const k8s::Job& job) { return "Job " + job.meta.name; }

std::string words_of_outlook(const Outlook& outlook, const k8s::Job& job) {
  auto words = fmt::format("the podFailurePolicy of {} ignores this loss", name_of(job));
  if (outlook.ending_codes.empty()) return words;
  return words + fmt::format(", but not if the program ends with exit code {}", fmt::join(outlook.ending_codes, ", "));
}

std::string index_of(const k8s::Pod& pod) {
  return std::string(k8s::find(pod.meta.annotations, kCompletionIndexAnnotation).value_or("?"));
}

std::int64_t index_failures(const k8s::Pod& pod) {
  const auto text = k8s::find(pod.meta.annotations, kIndexFailuresAnnotation).value_or("0");
  std::int64_t failures = 0;
  std::from_chars(text.data(), text.data() + text.size(), failures);
  return failures;
}

/// An operator who takes our record of a credit away has acknowledged it: it is not given again, and the limit that it
/// made, if it still stands, pays for the loss.
std::optional<CreditCase> was_removed(const k8s::Pod& pod, const JobRecord& record) {
  const auto found = record.removed.find(pod.meta.uid);
  if (found == record.removed.end()) return std::nullopt;
  const auto& [limit, seen_at] = found->second;
  const auto name = name_of(record.job);
  if (record.job.backoff_limit < limit) {
    return not_creditable(
        Reason::CreditReverted,
        fmt::format("another client removed this pod's credit from {} and took back its limit {}", name, limit));
  }
  return CreditCase{
      .kind = Kind::Given,
      .reason = Reason::Credited,
      .message = fmt::format("another client removed this pod's credit from {}, but backoffLimit is still {}", name,
                             record.job.backoff_limit),
      .seen_at = seen_at};
}

/// What holds for a pod that runs and for one that has failed.
CreditCase by_limit(const k8s::Pod& pod, const JobRecord& record, const JobRetryRules& rules) {
  const auto& job = record.job;
  const auto& credits = record.credits;
  if (!record.credits_readable) {
    return not_creditable(Reason::CreditRecordUnreadable,
                          fmt::format("the annotation {} of {} is not what we wrote: what was credited is not known",
                                      kRetryCreditsAnnotation, name_of(job)));
  }
  if (job.backoff_limit < credits.limit) {
    return not_creditable(
        Reason::CreditReverted,
        fmt::format("backoffLimit of {} is {}, and {} was our last credit's: another client took it back", name_of(job),
                    job.backoff_limit, credits.limit));
  }
  const auto* given = credits.find(pod.meta.uid);
  if (given != nullptr && given->state != RetryCredit::State::Unspent) {
    const auto seen = record.credit_seen.find(pod.meta.uid);
    return {.kind = Kind::Given,
            .reason = Reason::Credited,
            .message = fmt::format("{} has one more retry for this pod: its credit made backoffLimit {}", name_of(job),
                                   given->limit),
            .seen_at = seen == record.credit_seen.end() ? MonoTime::max() : seen->second.at};
  }
  if (auto removed = was_removed(pod, record)) return *std::move(removed);
  // There is no credit for an index.
  if (auto lost = lost_index(pod, job)) return not_creditable(Reason::IndexOutOfRetries, *std::move(lost));
  if (job.backoff_limit_per_index) {
    return not_needed(
        fmt::format("the loss costs index {} of {} one of its {} retries (backoffLimitPerIndex), which "
                    "cannot be given back; {} are used",
                    index_of(pod), name_of(job), *job.backoff_limit_per_index, index_failures(pod)));
  }
  if (job.backoff_limit >= kLimitless) {
    return not_needed(fmt::format("backoffLimit of {} has no end", name_of(job)));
  }
  if (!credits.has_unspent() && static_cast<std::int64_t>(credits.credits.size()) >= rules.max_per_job) {
    return not_creditable(Reason::CreditLimitReached,
                          fmt::format("{} has got {} retries back, jobRetry.maxPerJob is {}", name_of(job),
                                      credits.credits.size(), rules.max_per_job));
  }
  return {.kind = Kind::Needed, .reason = Reason::Crediting, .message = {}, .seen_at = {}};
}

/// Whether the built-in Job controller counts the losses of a Job that is not ours to credit.
bool counts_its_own_losses(const CreditCase& not_ours) { return not_ours.reason == Reason::JobOwnedByOther; }

/// Whether a pod stays because its loss cannot be credited for this reason. HoldIfFatal leaves to held_for_job_end what
/// is only a matter of counting.
bool is_held(JobRetryRules::NotCreditable rule, Reason reason) {
  switch (rule) {
    case JobRetryRules::NotCreditable::Evict:
      return false;
    case JobRetryRules::NotCreditable::HoldIfFatal:
      // Who counts, or from which limit, is not known; and the pods of a suspended Job go by themselves.
      return reason == Reason::JobManagedByOther || reason == Reason::JobSuspended ||
             reason == Reason::CreditReverted || reason == Reason::CreditRecordUnreadable;
    case JobRetryRules::NotCreditable::Hold:
      return true;
  }
  return true;
}

/// When the watch of Jobs has shown a change whose answer was lost, or has been silent for so long that nothing is
/// evicted on its word: what is not seen by then has not happened.
constexpr Millis kShownOrSilent = kUnseen + kOldestView;

/// A change of ours that the World does not show yet may take back the very credit that it shows.
std::optional<HoldReason> unseen_change(const JobRecord& record, const PlanInput& input) {
  const auto* attempt = input.requests.write(job_write_key(record.job.meta.uid));
  const bool is_seen = attempt == nullptr || attempt->resource_version != record.job.meta.resource_version;
  if (is_seen || !may_stand(*attempt)) return std::nullopt;
  std::optional<MonoTime> until;
  if (attempt->state == Attempt::State::Failed) until = attempt->at + kShownOrSilent;
  if (until && input.now.mono >= *until) return std::nullopt;
  return HoldReason{.reason = Reason::WaitingForCredit,
                    .message = fmt::format("our last change of {} is not seen yet", name_of(record.job)),
                    .until = until};
}

HoldReason wait_for_credit(const JobRecord& record, const PlanInput& input) {
  const auto key = job_write_key(record.job.meta.uid);
  const auto* attempt = input.requests.write(key);
  auto message = fmt::format("{} gets this pod's retry back first", name_of(record.job));
  if (attempt != nullptr && attempt->state == Attempt::State::Failed) {
    message += fmt::format("; the last attempt failed: {}: {}", to_string(attempt->error.kind), attempt->error.message);
  }
  return {.reason = Reason::WaitingForCredit, .message = std::move(message), .until = {}};
}

}  // namespace

bool awaits_condition(const AffectedPod& affected, const k8s::Job& job, const PlanInput& input) {
  if (affected.goes_with != nullptr) return false;
  const auto& pod = affected.pod();
  const auto* ours = our_condition(pod);
  if (ours != nullptr && ours->status == "True") return false;
  if (outlook_of_eviction(job, pod, true).counts != Counts::Never) return false;
  const auto* attempt = input.requests.condition(pod.meta.uid);
  return attempt == nullptr || (attempt->state != Attempt::State::Failed && !is_taken_away(*attempt, pod));
}

std::optional<std::string> lost_index(const k8s::Pod& pod, const k8s::Job& job) {
  if (!job.backoff_limit_per_index || index_failures(pod) < *job.backoff_limit_per_index) return std::nullopt;
  auto message = fmt::format("index {} of {} has no retry left (backoffLimitPerIndex {}, which cannot be changed)",
                             index_of(pod), name_of(job), *job.backoff_limit_per_index);
  if (job.max_failed_indexes) {
    message += fmt::format("; with maxFailedIndexes {} the loss may end the whole Job", *job.max_failed_indexes);
  }
  return message;
}

std::optional<CreditCase> not_ours(const k8s::Job& job) {
  if (!job.managed_by.empty() && job.managed_by != k8s::kJobController) {
    return not_creditable(Reason::JobManagedByOther,
                          fmt::format("{} is managed by {}: its retries are not ours", name_of(job), job.managed_by));
  }
  if (job.suspended) return not_creditable(Reason::JobSuspended, fmt::format("{} is suspended", name_of(job)));
  const auto& owner = job.meta.controller;
  if (owner && owner->kind != "CronJob") {
    return not_creditable(Reason::JobOwnedByOther, fmt::format("{} belongs to {} {}, which decides about its retries",
                                                               name_of(job), owner->kind, owner->name));
  }
  if (!owner && job.meta.has_other_owner) {
    return not_creditable(
        Reason::JobOwnedByOther,
        fmt::format("{} has an owner that is not its controller, and may decide about its retries", name_of(job)));
  }
  if (std::ranges::any_of(job.meta.labels, [](const auto& l) { return l.first == "kueue.x-k8s.io/queue-name"; })) {
    return not_creditable(Reason::JobOwnedByOther, fmt::format("{} is queued by Kueue", name_of(job)));
  }
  return std::nullopt;
}

const JobRecord* job_of(const k8s::Pod& pod, const World& world) {
  const auto& owner = pod.meta.controller;
  if (!owner || owner->kind != "Job" || !owner->api_version.starts_with("batch/")) return nullptr;
  return world.job_of(pod.meta);
}

CreditCase credit_case(const AffectedPod& affected, const JobRecord& record, const JobRetryRules& rules,
                       const PlanInput& input) {
  const auto& pod = affected.pod();
  const auto& job = record.job;
  if (k8s::is_ending(job) || job.meta.deletion) return {};
  auto other = not_ours(job);
  if (other && !counts_its_own_losses(*other)) return *std::move(other);
  const auto outlook = outlook_of_eviction(job, pod, false);
  switch (outlook.counts) {
    case Counts::Never:
      return not_needed(words_of_outlook(outlook, job));
    case Counts::EndsTheJob:
      return not_creditable(
          Reason::FailureRuleMatches,
          fmt::format("a podFailurePolicy rule of {} would end it, or the pod's index", name_of(job)));
    case Counts::Maybe:
      break;
  }
  if (awaits_condition(affected, job, input)) {
    return {.kind = Kind::AwaitsCondition, .reason = Reason::WaitingForCondition, .message = {}, .seen_at = {}};
  }
  return other ? *std::move(other) : by_limit(pod, record, rules);
}

CreditCase credit_case_of_dead(const k8s::Pod& pod, const JobRecord& record, const JobRetryRules& rules) {
  const auto& job = record.job;
  if (k8s::is_ending(job) || job.meta.deletion) return {};
  auto other = not_ours(job);
  if (other && !counts_its_own_losses(*other)) return *std::move(other);
  switch (counts(job, {k8s::PodEnd{.conditions = pod.conditions, .exits = pod.exits}})) {
    case Counts::Never:
      return not_needed(fmt::format("the podFailurePolicy of {} ignored this loss", name_of(job)));
    case Counts::EndsTheJob:
      return not_creditable(Reason::FailureRuleMatches,
                            fmt::format("a podFailurePolicy rule of {} ended it, or the pod's index", name_of(job)));
    case Counts::Maybe:
      break;
  }
  return other ? *std::move(other) : by_limit(pod, record, rules);
}

namespace {

/// What the rules of all policies that give this pod's retry back say together.
std::optional<HoldReason> held_by(const JobRetryRules& rules, const AffectedPod& affected, const JobRecord& record,
                                  const PlanInput& input) {
  const auto& pod = affected.pod();
  const auto found = credit_case(affected, record, rules, input);
  const bool enforcing = affected.mode == Mode::Enforce;
  switch (found.kind) {
    case Kind::None:
    case Kind::NotNeeded:
      return std::nullopt;
    case Kind::AwaitsCondition:
      if (!enforcing) return std::nullopt;
      return HoldReason{
          .reason = Reason::WaitingForCondition,
          .message = "the Job's podFailurePolicy looks for our condition, which is not seen on the pod yet",
          .until = {}};
    case Kind::NotCreditable:
      if (!is_held(rules.not_creditable, found.reason)) return std::nullopt;
      return HoldReason{.reason = Reason::NotCreditable,
                        .message = found.message + "; jobRetry.whenNotCreditable: Evict evicts all the same",
                        .until = {}};
    case Kind::Needed:
      // Nothing is written in observe mode, and no credit is given while evictions stop: those say why.
      if (!enforcing || pause_for(input.world, input.policy, input.now.wall, pod, affected.key) ||
          input.brake.holding(affected.key, pod.node_name, pod.meta.uid) != nullptr) {
        return std::nullopt;
      }
      return wait_for_credit(record, input);
    case Kind::Given: {
      if (auto unseen = unseen_change(record, input)) return unseen;
      const MonoTime until = found.seen_at == MonoTime::max() ? found.seen_at : found.seen_at + rules.settle;
      if (input.now.mono >= until) return std::nullopt;
      return HoldReason{
          .reason = Reason::WaitingForCredit,
          .message = fmt::format("{} shows this pod's retry; the Job controller gets jobRetry.settle ({} s) "
                                 "to read it",
                                 name_of(record.job), std::chrono::ceil<Seconds>(rules.settle).count()),
          .until = until};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<HoldReason> held_for_credit(const AffectedPod& affected, const PlanInput& input) {
  const auto* record = job_of(affected.pod(), input.world);
  if (record == nullptr) return std::nullopt;  // no Job, not batch/v1's, or gone with its pods to follow
  const auto rules = retry_rules(affected, input);
  return rules.crediting ? held_by(*rules.crediting, affected, *record, input) : std::nullopt;
}

}  // namespace dhc
