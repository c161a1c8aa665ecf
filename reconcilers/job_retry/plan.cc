#include "reconcilers/job_retry/plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "domain/findings/pauses.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/job_retry/endings.h"
#include "reconcilers/job_retry/losses.h"
#include "reconcilers/job_retry/planning.h"
#include "reconcilers/job_retry/review.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/retry_rules.h"
#include "reconcilers/shared/tolerations.h"

namespace dhc::job_retry {

namespace {

constexpr int kConflictsBeforeTests = 3;

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input), planning_(input) {}

  Planned<JobAction> run() {
    Gangs gangs(input_);
    std::set<std::string> seen;
    for (const auto* affected : input_.in_focus) {
      consider(*affected);
      const auto* unit = gangs.of(*affected);
      if (unit == nullptr) continue;
      planning_.planned.again.insert(affected->key);
      for (const auto* member : unit->members) {
        const bool is_first = member->goes_with != nullptr && seen.insert(member->pod().meta.uid).second;
        if (is_first) consider(*member);
      }
    }
    settle_losses(planning_);
    review_jobs(planning_);
    for (auto& [uid, draft] : planning_.drafts) send(draft);
    auto rejecting = tell_rejecting_nodes(input_);
    planning_.wake.note(rejecting.wake_at);
    std::ranges::move(rejecting.verdicts, std::back_inserter(planning_.planned.verdicts));
    planning_.planned.wake_at = planning_.wake.at();
    return std::move(planning_.planned);
  }

 private:
  void say(const AffectedPod& affected, Reason reason, std::string message, std::optional<MonoTime> next = {}) {
    planning_.say(affected.key, {.subject = subject_of(affected.pod()),
                                 .device = to_string(affected.key),
                                 .policy = affected.policy->name,
                                 .mode = to_string(affected.mode),
                                 .reason = reason,
                                 .message = std::move(message),
                                 .since = affected.since.wall,
                                 .next_at = next ? std::optional(wall_of(*next, input_.now)) : std::nullopt});
  }

  /// A pod that runs on a bad device: its Job gets the retry back before the pod is lost.
  void consider(const AffectedPod& affected) {
    const auto& pod = affected.pod();
    if (!affected.open || !affected.policy->evict || pod.meta.deletion) return;
    const auto* record = job_of(pod, input_.world);
    if (record == nullptr) return;
    const auto rules = retry_rules(affected, input_).crediting;
    if (!rules || excluded_because(affected, input_) || tolerated(affected, input_)) return;
    auto found = credit_case(affected, *record, *rules, input_);
    switch (found.kind) {
      case CreditCase::Kind::None:
      case CreditCase::Kind::AwaitsCondition:
        return;
      case CreditCase::Kind::NotNeeded:
        return say(affected, Reason::CreditNotNeeded, std::move(found.message));
      case CreditCase::Kind::NotCreditable:
        if (found.reason == Reason::CreditReverted) return;  // said of the Job
        return say(affected, found.reason, std::move(found.message));
      case CreditCase::Kind::Given:
        return say(affected, Reason::Credited, std::move(found.message));
      case CreditCase::Kind::Needed:
        return give(affected, *record, *rules);
    }
  }

  void give(const AffectedPod& affected, const JobRecord& record, const JobRetryRules& rules) {
    const auto& pod = affected.pod();
    if (affected.mode != Mode::Enforce) {
      return say(affected, Reason::WouldCredit,
                 fmt::format("backoffLimit of Job {} would be raised by one", record.job.meta.name));
    }
    // Suspect a reporting fault, and obey the pause: eviction says so, if nothing else holds it before.
    if (const auto pause = pause_for(input_.world, input_.policy, input_.now.wall, pod, affected.key))
      return planning_.planned.wake(affected.key, end_of(*pause, input_.now));
    if (affected.unknown_now || input_.brake.holding(affected.key, pod.node_name, pod.meta.uid) != nullptr) {
      return;
    }
    const auto key = job_write_key(record.job.meta.uid);
    const auto asks = PatchJob::asks_from(record.job.backoff_limit);
    planning_.planned.wake(affected.key, input_.requests.may_write_at(key, asks));
    auto& draft = planning_.draft_of(record);
    planning_.asked_by.try_emplace(record.job.meta.uid, affected.key);
    if (!credited_.contains(pod.meta.uid)) {
      if (!draft.has_room(rules.max_per_job)) {
        // The others of this turn took it: said in the next.
        planning_.planned.again.insert(affected.key);
        return;
      }
      draft.credit(pod, to_string(affected.key), RetryCredit::State::Given, input_.now.wall);
      credited_.insert(pod.meta.uid);
    }
    if (input_.requests.is_taken_away(key, asks))
      return say(affected, Reason::ChangedByOther, std::string(kTakenAway), input_.requests.may_write_at(key, asks));
    say(affected, Reason::Crediting,
        fmt::format("Job {} gets the retry back that this pod's loss will take", record.job.meta.name));
  }

  void send(Draft& draft) {
    const auto& job = draft.record().job;
    const auto key = job_write_key(job.meta.uid);
    const auto* attempt = input_.requests.write(key);
    const bool contended = attempt != nullptr && attempt->state == Attempt::State::Failed &&
                           attempt->error.kind == ErrorKind::Conflict && attempt->failures >= kConflictsBeforeTests;
    auto patch = draft.patch(contended);
    if (!patch) return;
    const auto may_write = [&] {
      return input_.requests.may_write(key, job.meta.resource_version, input_.now, patch->write_key()->asks);
    };
    const auto wake = [&] { planning_.wake.note(input_.requests.may_write_at(key, patch->write_key()->asks)); };
    if (!may_write() && input_.requests.is_taken_away(key, patch->write_key()->asks)) {
      wake();
      draft.leave_limit();
      patch = draft.patch(contended);
      if (!patch) return;
    }
    if (!may_write()) return wake();
    if (planning_.is_held_by_view(job, {}, {})) return;
    planning_.planned.actions.emplace_back(*std::move(patch));
  }

  const PlanInput& input_;
  Planning planning_;
  std::set<std::string> credited_;  // pods of this turn
};

}  // namespace

Planned<JobAction> plan(const PlanInput& input) { return Planner(input).run(); }

}  // namespace dhc::job_retry
