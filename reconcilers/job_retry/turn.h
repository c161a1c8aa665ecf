#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "reconcilers/job_retry/draft.h"
#include "reconcilers/job_retry/plan.h"

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

  const Scene& scene;
  Wake wake;
  std::map<std::string, Draft> drafts;  // by the Job's UID
  std::set<std::tuple<std::string, std::string, Reason>> said;
  Planned<JobAction> planned;
};

}  // namespace dhc::job_retry
