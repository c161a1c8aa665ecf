#include "domain/job_credit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "domain/names.h"
#include "domain/write_keys.h"

namespace dhc {

namespace {

using Kind = CreditCase::Kind;
using Action = k8s::JobFailureRule::Action;

// What SIGTERM and SIGKILL make of a container that does not handle them: its exit code is not known before.
constexpr std::array<std::int64_t, 2> kKilledCodes = {143, 137};

CreditCase not_creditable(Reason reason, std::string message) {
  return {.kind = Kind::NotCreditable, .reason = reason, .message = std::move(message), .seen_at = {}};
}

CreditCase not_needed(std::string message) {
  return {.kind = Kind::NotNeeded, .reason = Reason::CreditNotNeeded, .message = std::move(message), .seen_at = {}};
}

std::string name_of(const k8s::Job& job) { return "Job " + job.meta.name; }

std::optional<CreditCase> somebody_elses(const k8s::Job& job) {
  if (!job.managed_by.empty() && job.managed_by != k8s::kJobController) {
    return not_creditable(Reason::JobManagedByOther,
                          fmt::format("{} is managed by {}: its retries are not ours", name_of(job), job.managed_by));
  }
  const auto& owner = job.meta.controller;
  if (owner && owner->kind != "CronJob") {
    return not_creditable(Reason::JobOwnedByOther, fmt::format("{} belongs to {} {}, which decides about its retries",
                                                               name_of(job), owner->kind, owner->name));
  }
  if (std::ranges::any_of(job.meta.labels, [](const auto& l) { return l.first == "kueue.x-k8s.io/queue-name"; })) {
    return not_creditable(Reason::JobOwnedByOther, fmt::format("{} is queued by Kueue", name_of(job)));
  }
  if (job.suspended) return not_creditable(Reason::JobSuspended, fmt::format("{} is suspended", name_of(job)));
  return std::nullopt;
}

enum class Counts : std::uint8_t { Never, Maybe, EndsTheJob };

Counts counts(const k8s::Job& job, const std::vector<k8s::PodEnd>& ends) {
  bool never = true;
  for (const auto& end : ends) {
    const auto action = k8s::action_for(job, end);
    if (action == Action::FailJob || action == Action::FailIndex) return Counts::EndsTheJob;
    never = never && action == Action::Ignore;
  }
  return never ? Counts::Never : Counts::Maybe;
}

void set_true(std::vector<k8s::Condition>& conditions, std::string_view type) {
  std::erase_if(conditions, [&](const k8s::Condition& condition) { return condition.type == type; });
  conditions.push_back({.type = std::string(type), .status = "True"});
}

/// Every way in which the pod may end when it is evicted.
std::vector<k8s::PodEnd> ends_by_eviction(const k8s::Pod& pod, bool with_our_condition) {
  k8s::PodEnd end{.conditions = pod.conditions, .exits = {}};
  set_true(end.conditions, kDisruptionTarget);
  if (with_our_condition) set_true(end.conditions, kConditionType);
  std::vector<k8s::PodEnd> ends = {end};
  for (const auto code : kKilledCodes) {
    end.exits = {{.container = {}, .code = code}};
    ends.push_back(end);
  }
  return ends;
}

/// A Job that looks for our condition: it is worth waiting for it, unless it cannot be written.
bool awaits_condition(const k8s::Pod& pod, const k8s::Job& job, const Scene& scene) {
  const auto* ours = our_condition(pod);
  if (ours != nullptr && ours->status == "True") return false;
  if (counts(job, ends_by_eviction(pod, true)) != Counts::Never) return false;
  const auto* attempt = scene.ledger.condition(pod.meta.uid);
  return attempt == nullptr || attempt->state != Attempt::State::Failed;
}

std::int64_t index_failures(const k8s::Pod& pod) {
  const auto text = k8s::find(pod.meta.annotations, kIndexFailuresAnnotation).value_or("0");
  std::int64_t failures = 0;
  std::from_chars(text.data(), text.data() + text.size(), failures);
  return failures;
}

/// **Source:** seen on 1.37.1: the per-index limit is immutable, so there is no credit for an index.
std::optional<CreditCase> index_is_lost(const k8s::Pod& pod, const k8s::Job& job) {
  if (!job.backoff_limit_per_index || index_failures(pod) < *job.backoff_limit_per_index) return std::nullopt;
  const auto index = k8s::find(pod.meta.annotations, kCompletionIndexAnnotation).value_or("?");
  auto message = fmt::format("index {} of {} has no retry left (backoffLimitPerIndex {}, which cannot be changed)",
                             index, name_of(job), *job.backoff_limit_per_index);
  if (job.max_failed_indexes) {
    message += fmt::format("; with maxFailedIndexes {} the loss may end the whole Job", *job.max_failed_indexes);
  }
  return not_creditable(Reason::IndexOutOfRetries, std::move(message));
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
    return not_creditable(Reason::CreditReverted,
                          fmt::format("backoffLimit of {} is {}, and {} was our last credit's: somebody took it back",
                                      name_of(job), job.backoff_limit, credits.limit));
  }
  const auto* given = credits.find(pod.meta.uid);
  if (given != nullptr && given->state != RetryCredit::State::Unspent) {
    const auto seen = record.credit_seen.find(pod.meta.uid);
    return {.kind = Kind::Given,
            .reason = Reason::Credited,
            .message = fmt::format("backoffLimit of {} was raised to {} for this pod", name_of(job), given->limit),
            .seen_at = seen == record.credit_seen.end() ? MonoTime::max() : seen->second};
  }
  if (auto lost = index_is_lost(pod, job)) return *std::move(lost);
  if (job.backoff_limit >= kLimitless) {
    return not_needed(fmt::format("backoffLimit of {} has no end", name_of(job)));
  }
  const bool unspent = std::ranges::any_of(
      credits.credits, [](const RetryCredit& credit) { return credit.state == RetryCredit::State::Unspent; });
  if (!unspent && static_cast<std::int64_t>(credits.credits.size()) >= rules.max_per_job) {
    return not_creditable(Reason::CreditLimitReached,
                          fmt::format("{} has got {} retries back, jobRetry.maxPerJob is {}", name_of(job),
                                      credits.credits.size(), rules.max_per_job));
  }
  return {.kind = Kind::Needed, .reason = Reason::Crediting, .message = {}, .seen_at = {}};
}

std::optional<Ruling> wait_for_credit(const JobRecord& record, const Scene& scene) {
  const auto key = job_write_key(record.job.meta.uid);
  const auto* attempt = scene.ledger.write(key);
  auto message = fmt::format("{} gets this pod's retry back first", name_of(record.job));
  if (attempt != nullptr && attempt->state == Attempt::State::Failed) {
    message += fmt::format("; the last attempt failed: {}: {}", to_string(attempt->error.kind), attempt->error.message);
  }
  return Ruling{.reason = Reason::WaitingForCredit, .message = std::move(message), .until = {}};
}

}  // namespace

const JobRecord* job_of(const k8s::Pod& pod, const World& world) {
  const auto& owner = pod.meta.controller;
  if (!owner || owner->kind != "Job" || !owner->api_version.starts_with("batch/")) return nullptr;
  return world.job(owner->uid);
}

CreditCase credit_case(const k8s::Pod& pod, const JobRecord& record, const JobRetryRules& rules, const Scene& scene) {
  const auto& job = record.job;
  if (k8s::is_ending(job) || job.meta.deletion) return {};
  if (auto other = somebody_elses(job)) return *std::move(other);
  switch (counts(job, ends_by_eviction(pod, false))) {
    case Counts::Never:
      return not_needed(fmt::format("the podFailurePolicy of {} ignores this loss", name_of(job)));
    case Counts::EndsTheJob:
      return not_creditable(
          Reason::FailureRuleMatches,
          fmt::format("a podFailurePolicy rule of {} would end it, or the pod's index", name_of(job)));
    case Counts::Maybe:
      break;
  }
  if (awaits_condition(pod, job, scene)) {
    return {.kind = Kind::AwaitsCondition, .reason = Reason::WaitingForCondition, .message = {}, .seen_at = {}};
  }
  return by_limit(pod, record, rules);
}

CreditCase credit_case_of_dead(const k8s::Pod& pod, const JobRecord& record, const JobRetryRules& rules, const Scene&) {
  const auto& job = record.job;
  if (k8s::is_ending(job) || job.meta.deletion) return {};
  if (auto other = somebody_elses(job)) return *std::move(other);
  switch (counts(job, {k8s::PodEnd{.conditions = pod.conditions, .exits = pod.exits}})) {
    case Counts::Never:
      return not_needed(fmt::format("the podFailurePolicy of {} ignored this loss", name_of(job)));
    case Counts::EndsTheJob:
      return not_creditable(Reason::FailureRuleMatches,
                            fmt::format("a podFailurePolicy rule of {} ended it, or the pod's index", name_of(job)));
    case Counts::Maybe:
      break;
  }
  return by_limit(pod, record, rules);
}

std::optional<Ruling> held_for_credit(const Exposure& exposure, const Scene& scene) {
  const auto& rules = exposure.policy->job_retry;
  const auto& pod = exposure.pod();
  if (!rules || !rules->credit || !pod.meta.controller || pod.meta.controller->kind != "Job") return std::nullopt;
  const auto* record = job_of(pod, scene.world);
  if (record == nullptr) return std::nullopt;  // not batch/v1's Job, or gone with its pods to follow
  const auto found = credit_case(pod, *record, *rules, scene);
  const bool enforcing = exposure.mode == Mode::Enforce;
  switch (found.kind) {
    case Kind::None:
    case Kind::NotNeeded:
      return std::nullopt;
    case Kind::AwaitsCondition:
      if (!enforcing) return std::nullopt;
      return Ruling{.reason = Reason::WaitingForCondition,
                    .message = "the Job's podFailurePolicy looks for our condition, which is not seen on the pod yet",
                    .until = {}};
    case Kind::NotCreditable:
      if (rules->evict_when_not_creditable) return std::nullopt;
      return Ruling{.reason = Reason::NotCreditable,
                    .message = found.message + "; jobRetry.whenNotCreditable: Evict evicts all the same",
                    .until = {}};
    case Kind::Needed:
      // Nothing is written in observe mode, and no credit is given while evictions stop: those say why.
      if (!enforcing || scene.policy.limits.paused || scene.brake.holding(exposure.key, pod.node_name) != nullptr) {
        return std::nullopt;
      }
      return wait_for_credit(*record, scene);
    case Kind::Given: {
      const MonoTime until = found.seen_at == MonoTime::max() ? found.seen_at : found.seen_at + rules->settle;
      if (scene.now.mono >= until) return std::nullopt;
      return Ruling{.reason = Reason::WaitingForCredit,
                    .message = fmt::format("{} shows this pod's retry; the Job controller gets jobRetry.settle ({} s) "
                                           "to read it",
                                           name_of(record->job), std::chrono::ceil<Seconds>(rules->settle).count()),
                    .until = until};
    }
  }
  return std::nullopt;
}

}  // namespace dhc
