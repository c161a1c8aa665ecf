#pragma once
#include <set>
#include <string>
#include <vector>

#include "simulator/api/store.h"

namespace dhc::sim {

/// What the Job controller makes of a Job's pods.
struct JobAccount {
  std::vector<ObjectPtr> all;
  std::vector<ObjectPtr> active;  ///< Neither ended nor being deleted, oldest first.
  std::int64_t ready = 0;
  std::int64_t terminating = 0;              ///< Being deleted and not ended.
  std::vector<std::string> newly_failed;     ///< To be added to `status.failed`.
  std::vector<std::string> newly_succeeded;  ///< To be added to `status.succeeded`.
  std::vector<std::string> newly_ended;   ///< Failed ones, also those that a policy ignores: each is a back-off step.
  std::vector<ObjectPtr> counted_now;     ///< All of these; their finalizers may go.
  std::set<std::int64_t> indexes_taken;   ///< Indexes with an active or succeeded pod.
  std::set<std::int64_t> failed_indexes;  ///< Of those that a podFailurePolicy rule says FailIndex of.
  bool fail_job = false;                  ///< A podFailurePolicy rule says FailJob.
};

/// **Source:** job_controller.go, seen on 1.37.1: with podReplacementPolicy TerminatingOrFailed a pod counts as failed
/// as soon as it is being deleted, unless it has Succeeded; with Failed only in phase Failed.
[[nodiscard]] JobAccount account_for(const Json& job, const Objects& pods, const std::set<std::string>& counted);

[[nodiscard]] bool replaces_when_failed(const Json& job);

/// The reason of its FailureTarget condition, or empty.
[[nodiscard]] std::string failure_target(const Json& job);

[[nodiscard]] bool is_complete(const Json& job, std::int64_t succeeded, const JobAccount& account);

/// How many pods should run.
[[nodiscard]] std::int64_t wanted_active(const Json& job, std::int64_t succeeded);

}  // namespace dhc::sim
