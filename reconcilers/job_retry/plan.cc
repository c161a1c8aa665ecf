#include "reconcilers/job_retry/plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "domain/limits/write_keys.h"
#include "reconcilers/job_retry/endings.h"
#include "reconcilers/job_retry/losses.h"
#include "reconcilers/job_retry/review.h"
#include "reconcilers/job_retry/turn.h"
#include "reconcilers/shared/exclusions.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/retry_rules.h"

namespace dhc::job_retry {

namespace {

constexpr int kConflictsBeforeTests = 3;

class Planner {
 public:
  explicit Planner(const Scene& scene) : scene_(scene), turn_(scene) {}

  Planned<JobAction> run() {
    for (const auto& exposure : scene_.exposures) consider(exposure);
    settle_losses(turn_);
    review_jobs(turn_);
    for (auto& [uid, draft] : turn_.drafts) send(draft);
    auto holes = tell_black_holes(scene_);
    turn_.wake.note(holes.wake_at);
    std::ranges::move(holes.verdicts, std::back_inserter(turn_.planned.verdicts));
    turn_.planned.wake_at = turn_.wake.at();
    return std::move(turn_.planned);
  }

 private:
  void say(const Exposure& exposure, Reason reason, std::string message) {
    turn_.say({.subject = subject_of(exposure.pod()),
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
    if (!exposure.open || !exposure.policy->evict || pod.meta.deletion) return;
    const auto* record = job_of(pod, scene_.world);
    if (record == nullptr) return;
    const auto rules = retry_rules(exposure, scene_).crediting;
    if (!rules || excluded_because(exposure, scene_)) return;
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
    // Suspect a reporting fault, and obey the pause: eviction says so.
    if (exposure.unknown_now || scene_.policy.limits.paused ||
        scene_.brake.holding(exposure.key, pod.node_name, pod.meta.uid) != nullptr) {
      return;
    }
    auto& draft = turn_.draft_of(record);
    if (!credited_.contains(pod.meta.uid)) {
      if (!draft.has_room(rules.max_per_job)) return;  // the others of this turn took it: said in the next
      draft.credit(pod, to_string(exposure.key), RetryCredit::State::Given, scene_.now.wall);
      credited_.insert(pod.meta.uid);
    }
    say(exposure, Reason::Crediting,
        fmt::format("Job {} gets the retry back that this pod's loss will take", record.job.meta.name));
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
      return turn_.wake.note(scene_.ledger.may_write_at(key));
    }
    if (turn_.is_held_by_view(job, {}, {})) return;
    turn_.planned.actions.emplace_back(*std::move(patch));
  }

  const Scene& scene_;
  Turn turn_;
  std::set<std::string> credited_;  // pods of this turn
};

}  // namespace

Planned<JobAction> plan(const Scene& scene) { return Planner(scene).run(); }

}  // namespace dhc::job_retry
