#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "domain/contract/subject.h"
#include "reconcilers/job_retry/draft.h"
#include "reconcilers/job_retry/plan.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::job_retry {

/// A plan that is being made: what the Jobs' records are to say, and the verdicts so far.
struct Planning {
  explicit Planning(const PlanInput& of) : input(of) {}

  /// The Job's record to be changed.
  Draft& draft_of(const JobRecord& record) { return drafts.try_emplace(record.job.meta.uid, record).first->second; }

  /// Says it, once a subject, device and reason.
  void say(Verdict verdict) { say({}, std::move(verdict)); }
  /// Of a device in focus.
  void say(const DeviceKey& key, Verdict verdict) {
    if (said.insert({verdict.subject.uid, verdict.device, verdict.reason}).second) planned.say(key, std::move(verdict));
  }

  /// True if what is known is too old to write to this Job on it; says so, of the device and policy if they are known.
  bool is_held_by_view(const k8s::Job& job, const std::string& device, const std::string& policy) {
    const auto about = asked_by.find(job.meta.uid);
    const auto key = about == asked_by.end() ? DeviceKey() : about->second;
    const auto old = input.world.views().too_old(kViewsOfJobPatch, input.now);
    auto hold = held_by_view(input, key, kViewsOfJobPatch);
    if (!old || !hold) return false;
    const auto since = std::chrono::floor<Seconds>(wall_of(old->heard_at, input.now));
    say(key, verdict_of({.subject = subject_of(job), .device = device, .policy = policy, .since = since},
                        *std::move(hold), input.now));
    return true;
  }

  const PlanInput& input;
  Wake wake;
  std::map<std::string, Draft> drafts;        // by the Job's UID
  std::map<std::string, DeviceKey> asked_by;  // the first device in focus that a credit is for, by the Job's UID
  std::set<std::tuple<std::string, std::string, Reason>> said;
  Planned<JobAction> planned;
};

}  // namespace dhc::job_retry
