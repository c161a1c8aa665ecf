#include "reconcilers/job_retry/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "domain/exclusions.h"
#include "domain/job_credit.h"
#include "domain/names.h"
#include "domain/rulings.h"
#include "domain/write_keys.h"
#include "reconcilers/job_retry/draft.h"
#include "reconcilers/job_retry/endings.h"

namespace dhc::job_retry {

namespace {

constexpr int kConflictsBeforeTests = 3;
/// Until then a failed pod may not be counted yet: a write of ours would cost the Job controller a conflict.
constexpr Millis kCounted = Seconds(60);

/// Since when this device has been healthy without interruption, as far as this process has seen; none if it is not.
std::optional<MonoTime> healthy_since(const DeviceKey& key, MonoTime seen_at, const World& world) {
  const auto* state = world.tracker().find(key);
  if (state == nullptr || !state->has_source || state->health != k8s::Health::Healthy) return std::nullopt;
  return state->recovered_at ? state->recovered_at->mono : seen_at;
}

class Planner {
 public:
  explicit Planner(const Scene& scene) : scene_(scene) {}

  Planned<JobAction> run() {
    for (const auto& exposure : scene_.exposures) consider(exposure);
    for (const auto& finding : find_endings(scene_)) consider(finding);
    for (const auto& uid : scene_.world.noted_jobs()) review(*scene_.world.job(uid));
    for (auto& [uid, draft] : drafts_) send(draft);
    auto holes = tell_black_holes(scene_);
    wake_.note(holes.wake_at);
    std::ranges::move(holes.verdicts, std::back_inserter(planned_.verdicts));
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  Draft& draft_of(const JobRecord& record) { return drafts_.try_emplace(record.job.meta.uid, record).first->second; }

  static Subject subject_of_job(const k8s::Job& job) {
    return {.kind = "Job", .ns = job.meta.ns, .name = job.meta.name, .uid = job.meta.uid};
  }

  void say(Verdict verdict) {
    if (said_.insert({verdict.subject.uid, verdict.device, verdict.reason}).second) {
      planned_.verdicts.push_back(std::move(verdict));
    }
  }

  void say(const Exposure& exposure, Reason reason, std::string message) {
    say({.subject = subject_of(exposure.pod()),
         .device = to_string(exposure.key),
         .policy = exposure.policy->name,
         .reason = reason,
         .message = std::move(message),
         .since = exposure.since.wall,
         .next_at = std::nullopt});
  }

  /// A pod that runs on a bad device: its Job gets the retry back before the pod is lost.
  void consider(const Exposure& exposure) {
    const auto& pod = exposure.pod();
    const auto& rules = exposure.policy->job_retry;
    if (!exposure.open || !exposure.policy->evict || !rules || !rules->credit || pod.meta.deletion) return;
    const auto* record = job_of(pod, scene_.world);
    if (record == nullptr || excluded_because(exposure, scene_)) return;
    auto found = credit_case(pod, *record, *rules, scene_);
    switch (found.kind) {
      case CreditCase::Kind::None:
      case CreditCase::Kind::AwaitsCondition:
        return;
      case CreditCase::Kind::NotNeeded:
        return say(exposure, Reason::CreditNotNeeded, std::move(found.message));
      case CreditCase::Kind::NotCreditable:
        if (found.reason == Reason::CreditReverted) return;  // said of the Job
        return say(exposure, found.reason, std::move(found.message));
      case CreditCase::Kind::Given:
        return say(exposure, Reason::Credited, std::move(found.message));
      case CreditCase::Kind::Needed:
        return give(exposure, *record, *rules);
    }
  }

  void give(const Exposure& exposure, const JobRecord& record, const JobRetryRules& rules) {
    const auto& pod = exposure.pod();
    if (exposure.mode != Mode::Enforce) {
      return say(exposure, Reason::WouldCredit,
                 fmt::format("backoffLimit of Job {} would be raised by one", record.job.meta.name));
    }
    // Suspect the thermometer, and obey the pause: eviction says so.
    if (exposure.unknown_now || scene_.policy.limits.paused ||
        scene_.brake.holding(exposure.key, pod.node_name) != nullptr) {
      return;
    }
    auto& draft = draft_of(record);
    if (credited_.insert(pod.meta.uid).second) {
      if (!draft.has_room(rules.max_per_job)) return;  // the others of this turn took it: said in the next
      draft.credit(pod, to_string(exposure.key), RetryCredit::State::Given, scene_.now.wall);
    }
    say(exposure, Reason::Crediting,
        fmt::format("Job {} gets the retry back that this pod's loss will take", record.job.meta.name));
  }

  /// A pod that has ended.
  void consider(const Finding& finding) {
    const auto& pod = finding.ending->pod;
    const auto& record = *finding.record;
    const bool died_for_good = k8s::failure_of(record.job) != nullptr;
    const bool probable = finding.what == Reason::ProbablyDiedOfDevice;
    const bool blames = finding.what == Reason::DiedOfDevice || finding.what == Reason::RejectedByKubelet;
    const auto what = blames && died_for_good ? Reason::JobDiedOfDevice : finding.what;
    auto message = finding.why;
    if (what == Reason::JobDiedOfDevice) message = fmt::format("this Job died of {}: {}", finding.device, finding.why);
    say({.subject = subject_of_job(record.job),
         .device = finding.device,
         .policy = finding.policy == nullptr ? std::string() : finding.policy->name,
         .reason = what,
         .message = std::move(message),
         .since = finding.ending->at.wall,
         .next_at = std::nullopt});
    if (probable || finding.mode != Mode::Enforce) return;
    auto& draft = draft_of(record);
    draft.lose(to_string(what), pod, finding.device, finding.ending->at.wall);
    if (!blames) return;
    const auto& rules = *finding.policy->job_retry;
    if (what == Reason::JobDiedOfDevice) return recreate(finding, rules);
    if (scene_.policy.limits.paused || record.credits.find(pod.meta.uid) != nullptr) return;
    const auto found = credit_case_of_dead(pod, record, rules, scene_);
    if (found.kind != CreditCase::Kind::Needed || !draft.has_room(rules.max_per_job)) return;
    draft.credit(pod, finding.device, RetryCredit::State::Spent, scene_.now.wall);
  }

  void recreate(const Finding& finding, const JobRetryRules& rules) {
    const auto& job = finding.record->job;
    const bool owned = job.meta.controller || !job.managed_by.empty() || !job.meta.labels.empty();
    if (!rules.recreate_once || owned || !k8s::is_finished(job) || scene_.policy.limits.paused) return;
    if (scene_.world.is_recreated(job.meta.uid) || !recreated_.insert(job.meta.uid).second) return;
    const auto key = job_recreation_key(job.meta.uid);
    if (!scene_.ledger.may_write(key, {}, scene_.now)) {
      say_not_recreated(finding, *scene_.ledger.write(key));
      return wake_.note(scene_.ledger.may_write_at(key));
    }
    planned_.actions.emplace_back(
        RecreateJob{.ns = job.meta.ns, .name = job.meta.name, .uid = job.meta.uid, .device = finding.device});
  }

  void say_not_recreated(const Finding& finding, const Attempt& attempt) {
    if (attempt.state != Attempt::State::Failed) return;
    auto ruling = held_by_failure(attempt);
    say({.subject = subject_of_job(finding.record->job),
         .device = finding.device,
         .policy = finding.policy->name,
         .reason = ruling.reason,
         .message = "jobRetry.recreate could not make this Job again: " + ruling.message,
         .since = finding.ending->at.wall,
         .next_at = wall_of(attempt.not_before, scene_.now)});
  }

  /// A Job that carries our annotations: what has become of its credits.
  void review(const JobRecord& record) {
    const auto& job = record.job;
    for (const auto& loss : record.losses) {
      if (loss.what == to_string(Reason::EvictedPodSucceeded)) say_loss(job, loss, Reason::EvictedPodSucceeded);
      if (loss.what == to_string(Reason::JobDiedOfDevice)) say_loss(job, loss, Reason::JobDiedOfDevice);
    }
    if (k8s::is_ending(job) || job.meta.deletion || !record.credits_readable) return;
    if (job.backoff_limit < record.credits.limit) return say_reverted(record);
    const auto* policy = policy_of(job);
    if (policy == nullptr || effective_mode(policy, scene_.policy) != Mode::Enforce) return;
    for (const auto& credit : record.credits.credits) {
      if (credit.state == RetryCredit::State::Given) settle(record, credit, *policy);
    }
    if (policy->job_retry->take_back) take_back(record);
  }

  void say_loss(const k8s::Job& job, const JobLoss& loss, Reason reason) {
    say({.subject = subject_of_job(job),
         .device = loss.device,
         .policy = {},
         .reason = reason,
         .message =
             reason == Reason::JobDiedOfDevice
                 ? fmt::format("this Job died of {} (pod {})", loss.device, loss.pod)
                 : fmt::format("pod {} was evicted and its containers exited 0: its work may not be done", loss.pod),
         .since = loss.at,
         .next_at = std::nullopt});
  }

  void say_reverted(const JobRecord& record) {
    const auto& job = record.job;
    say({.subject = subject_of_job(job),
         .device = {},
         .policy = {},
         .reason = Reason::CreditReverted,
         .message =
             fmt::format("backoffLimit is {}, and {} was our last credit's: somebody, such as a GitOps tool, took "
                         "it back; nothing of this Job is credited or evicted until it is {} again",
                         job.backoff_limit, record.credits.limit, record.credits.limit),
         .since = record.credits.credits.empty() ? scene_.now.wall : record.credits.credits.back().at,
         .next_at = std::nullopt});
  }

  /// The policy that covers the Job's pods, if it has to do with retries.
  const DevicePolicy* policy_of(const k8s::Job& job) const {
    for (const auto& uid : scene_.world.pods_of_job(job.meta.uid)) {
      const auto& record = *scene_.world.pod(uid);
      for (const auto& holding : record.holdings) {
        const auto* policy = policy_for(scene_.world, scene_.policy, record.pod, holding.key);
        if (policy != nullptr && policy->job_retry && policy->job_retry->credit) return policy;
      }
    }
    return nullptr;
  }

  static bool is_quiet(const k8s::Job& job) { return job.terminating == 0 && job.uncounted == 0; }

  bool is_lost(const std::string& uid, const PodRecord* pod) {
    if (pod == nullptr) return true;
    const auto ending = scene_.world.endings().find(uid);
    if (is_live(pod->pod) || ending == scene_.world.endings().end()) return false;
    const MonoTime at = ending->second.at.mono + kCounted;
    if (scene_.now.mono < at) wake_.note(at);
    return scene_.now.mono >= at;
  }

  void settle(const JobRecord& record, const RetryCredit& credit, const DevicePolicy& policy) {
    const auto* pod = scene_.world.pod(credit.pod_uid);
    if (pod != nullptr && pod->pod.phase == k8s::PodPhase::Succeeded) return mark(record, credit, true);
    if (is_lost(credit.pod_uid, pod)) return is_quiet(record.job) ? mark(record, credit, false) : void();
    if (!is_live(pod->pod) || pod->pod.meta.deletion) return;
    for (const auto& holding : pod->holdings) {
      if (to_string(holding.key) != credit.device) continue;
      const auto seen = record.credit_seen.find(credit.pod_uid);
      if (seen == record.credit_seen.end()) return;
      const auto since = healthy_since(holding.key, seen->second, scene_.world);
      if (!since) return;
      const MonoTime at = *since + policy.recover.healthy_for;
      if (scene_.now.mono < at) return wake_.note(at);
      return mark(record, credit, true);
    }
  }

  void mark(const JobRecord& record, const RetryCredit& credit, bool unspent) {
    auto* entry = draft_of(record).credits().find(credit.pod_uid);
    if (entry == nullptr || entry->state != RetryCredit::State::Given) return;
    entry->state = unspent ? RetryCredit::State::Unspent : RetryCredit::State::Spent;
  }

  /// **Source:** seen on 1.37.1: lowering the limit after a failure was counted ends the Job and kills its pods.
  void take_back(const JobRecord& record) {
    const auto& job = record.job;
    if (!is_quiet(job) || job.failed != 0 || !credit_free(job)) return;
    auto& draft = draft_of(record);
    const bool unspent = std::ranges::any_of(
        record.credits.credits, [](const RetryCredit& credit) { return credit.state == RetryCredit::State::Unspent; });
    if (unspent && draft.credits() == record.credits) draft.take_back();
  }

  /// Whether no pod of the Job has failed, is going, or is on a bad device.
  bool credit_free(const k8s::Job& job) const {
    for (const auto& uid : scene_.world.pods_of_job(job.meta.uid)) {
      const auto& pod = scene_.world.pod(uid)->pod;
      if (pod.phase == k8s::PodPhase::Failed || pod.meta.deletion) return false;
    }
    return std::ranges::none_of(scene_.exposures, [&](const Exposure& exposure) {
      return exposure.pod().meta.controller && exposure.pod().meta.controller->uid == job.meta.uid;
    });
  }

  void send(const Draft& draft) {
    const auto& job = draft.record().job;
    const auto key = job_write_key(job.meta.uid);
    const auto* attempt = scene_.ledger.write(key);
    const bool contended = attempt != nullptr && attempt->state == Attempt::State::Failed &&
                           attempt->error.kind == ErrorKind::Conflict && attempt->failures >= kConflictsBeforeTests;
    auto patch = draft.patch(contended);
    if (!patch) return;
    if (!scene_.ledger.may_write(key, job.meta.resource_version, scene_.now)) {
      return wake_.note(scene_.ledger.may_write_at(key));
    }
    planned_.actions.emplace_back(*std::move(patch));
  }

  const Scene& scene_;
  Wake wake_;
  std::map<std::string, Draft> drafts_;  // by the Job's UID
  std::set<std::string> credited_;       // pods of this turn
  std::set<std::string> recreated_;      // Jobs of this turn
  std::set<std::tuple<std::string, std::string, Reason>> said_;
  Planned<JobAction> planned_;
};

}  // namespace

Planned<JobAction> plan(const Scene& scene) { return Planner(scene).run(); }

}  // namespace dhc::job_retry
