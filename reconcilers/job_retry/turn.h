#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "domain/contract/subject.h"
#include "reconcilers/job_retry/draft.h"
#include "reconcilers/job_retry/plan.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::job_retry {

/// What one turn has made up so far: the Jobs' records as they shall be, and what is said.
struct Turn {
  explicit Turn(const Scene& of) : scene(of) {}

  /// The Job's record to be changed.
  Draft& draft_of(const JobRecord& record) { return drafts.try_emplace(record.job.meta.uid, record).first->second; }

  /// Says it, once a subject, device and reason.
  void say(Verdict verdict) {
    if (said.insert({verdict.subject.uid, verdict.device, verdict.reason}).second) {
      planned.verdicts.push_back(std::move(verdict));
    }
  }

  /// True if what is known is too old to write to this Job on it; says so, of the device and policy if they are known.
  bool is_held_by_view(const k8s::Job& job, const std::string& device, const std::string& policy) {
    const auto old = scene.world.views().too_old(kViewsOfJobPatch, scene.now);
    auto ruling = held_by_view(scene, kViewsOfJobPatch);
    if (!old || !ruling) return false;
    const auto since = std::chrono::floor<Seconds>(wall_of(old->heard_at, scene.now));
    say(verdict_of({.subject = subject_of(job), .device = device, .policy = policy, .since = since}, *std::move(ruling),
                   scene.now));
    return true;
  }

  const Scene& scene;
  Wake wake;
  std::map<std::string, Draft> drafts;  // by the Job's UID
  std::set<std::tuple<std::string, std::string, Reason>> said;
  Planned<JobAction> planned;
};

}  // namespace dhc::job_retry
