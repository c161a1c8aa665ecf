#include "reconcilers/job_retry/losses.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/disruption.h"
#include "domain/contract/names.h"
#include "domain/findings/pauses.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/job_retry/endings.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/shared/job_credit.h"

namespace dhc::job_retry {

namespace {

/// The Job controller decides within seconds of a pod's end whether the Job has failed by it.
constexpr Millis kAtOnce = Seconds(60);

/// Whether a Job fails for this reason because a pod of it failed. **Source:** batch/v1 JobReason constants; a deadline
/// or a success policy has nothing to do with any one pod.
bool is_of_pods(std::string_view reason) {
  constexpr std::array<std::string_view, 4> kOfPods = {"BackoffLimitExceeded", "PodFailurePolicy", "FailedIndexes",
                                                       "MaxFailedIndexesExceeded"};
  return std::ranges::find(kOfPods, reason) != kOfPods.end();
}

/// When the Job controller decided that the Job fails, because of its pods; none: it did not, or of something else.
std::optional<WallTime> failed_by_pods_at(const k8s::Job& job) {
  std::optional<WallTime> earliest;
  for (const auto& condition : job.conditions) {
    if (condition.status != "True" || (condition.type != "Failed" && condition.type != "FailureTarget")) continue;
    if (!is_of_pods(condition.reason) || !condition.last_transition) return std::nullopt;
    if (!earliest || *condition.last_transition < *earliest) earliest = condition.last_transition;
  }
  return earliest;
}

class Losses {
 public:
  explicit Losses(Planning& planning) : planning_(planning), input_(planning.input) {}

  void consider(const Finding& finding) {
    const bool blames = finding.what == Reason::DiedOfDevice || finding.what == Reason::RejectedByKubelet;
    const auto what = blames && ended_the_job(finding) ? Reason::JobDiedOfDevice : finding.what;
    say(finding, what);
    // Evidence that comes late says nothing any more, and in the end the pod is forgotten.
    for (const auto time : {kLateEvidence, kEndingMemory})
      planning_.wake.note_after(input_.now.mono, finding.ending->at.mono + time);
    if (finding.what == Reason::ProbablyDiedOfDevice || !may_write(finding)) return;
    const auto& ending = *finding.ending;
    // What the Job has said once and says no more was taken away by an operator, or by newer losses.
    if (ending.told != to_string(what)) {
      planning_.draft_of(*finding.record).lose(to_string(what), ending.pod, finding.device, ending.at.wall);
    }
    if (!blames) return;
    if (const auto pause = pause_for(input_.world, input_.policy, input_.now.wall, ending.pod, finding.key))
      return planning_.wake.note(end_of(*pause, input_.now));
    if (what == Reason::JobDiedOfDevice) return recreate(finding);
    credit(finding);
  }

 private:
  /// Whether the Job failed by this very loss: one that nothing has paid for, and at once.
  bool ended_the_job(const Finding& finding) const {
    const auto& record = *finding.record;
    const auto& uid = finding.ending->pod.meta.uid;
    const auto failed_at = failed_by_pods_at(record.job);
    if (!failed_at || record.credits.find(uid) != nullptr || record.removed.contains(uid)) return false;
    const auto is_then = [&](WallTime ended) {
      const auto apart = input_.world.ours(*failed_at) - ended;
      return apart < kAtOnce && apart > -kAtOnce;
    };
    const auto& pod = finding.ending->pod;
    // Most Jobs count a pod that is deleted at once, however long its program takes to end.
    return is_then(finding.ending->at.wall) || (pod.meta.deletion && is_then(input_.world.ours(asked_to_end_at(pod))));
  }

  void say(const Finding& finding, Reason what) {
    planning_.say({.subject = subject_of(finding.record->job),
                   .device = finding.device,
                   .policy = finding.policy == nullptr ? std::string() : finding.policy->name,
                   .reason = what,
                   .message = what == Reason::JobDiedOfDevice
                                  ? fmt::format("this Job died of {}: {}", finding.device, finding.why)
                                  : finding.why,
                   .since = finding.ending->at.wall,
                   .next_at = std::nullopt});
  }

  /// In enforce mode, on a Job whose retries are ours, and not while a reporting fault is suspected.
  bool may_write(const Finding& finding) const {
    const auto& pod = finding.ending->pod;
    return finding.mode == Mode::Enforce && !opted_out(pod, input_.world) && !not_ours(finding.record->job) &&
           !suspected(pod, finding.key.scope, input_) &&
           input_.brake.holding(finding.key, pod.node_name, pod.meta.uid) == nullptr;
  }

  void credit(const Finding& finding) {
    const auto& pod = finding.ending->pod;
    const auto& record = *finding.record;
    const auto* given = record.credits.find(pod.meta.uid);
    // An unspent one was not meant for this loss, and pays for it all the same.
    if (given != nullptr && given->state != RetryCredit::State::Unspent) return;
    const auto& rules = *finding.policy->job_retry;
    auto& draft = planning_.draft_of(record);
    const auto found = credit_case_of_dead(pod, record, rules);
    if (found.kind != CreditCase::Kind::Needed || !draft.has_room(rules.max_per_job)) return;
    draft.credit(pod, finding.device, RetryCredit::State::Spent, input_.now.wall);
  }

  void recreate(const Finding& finding) {
    const auto& job = finding.record->job;
    const bool owned =
        job.meta.controller || job.meta.has_other_owner || !job.managed_by.empty() || !job.meta.labels.empty();
    if (!finding.policy->job_retry->recreate_once || owned || !k8s::is_finished(job)) return;
    if (input_.world.is_recreated(job) || !recreated_.insert(job.meta.uid).second) return;
    const auto key = job_recreation_key(job.meta.uid);
    if (!input_.requests.may_write(key, {}, input_.now)) {
      say_not_recreated(finding, *input_.requests.write(key));
      return planning_.wake.note(input_.requests.may_write_at(key));
    }
    if (planning_.is_held_by_view(job, finding.device, finding.policy->name)) return;
    planning_.planned.actions.emplace_back(
        RecreateJob{.ns = job.meta.ns, .name = job.meta.name, .uid = job.meta.uid, .device = finding.device});
  }

  void say_not_recreated(const Finding& finding, const Attempt& attempt) {
    if (attempt.state != Attempt::State::Failed) return;
    auto hold = held_by_failure(attempt);
    hold.message = "jobRetry.recreate could not make this Job again: " + hold.message;
    planning_.say(verdict_of({.subject = subject_of(finding.record->job),
                              .device = finding.device,
                              .policy = finding.policy->name,
                              .since = finding.ending->at.wall},
                             std::move(hold), input_.now));
  }

  Planning& planning_;
  const PlanInput& input_;
  std::set<std::string> recreated_;  // Jobs of this turn
};

}  // namespace

void settle_losses(Planning& planning) {
  Losses losses(planning);
  for (const auto& finding : find_endings(planning.input)) losses.consider(finding);
}

}  // namespace dhc::job_retry
