#include "simulator/controllers/job_account.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

enum class PolicyAction : std::uint8_t { Count, Ignore, FailIndex, FailJob };

bool matches_condition(const Json& rule, const Json& pod) {
  return std::ranges::any_of(list(rule, {"onPodConditions"}), [&](const Json& wanted) {
    auto status = text(wanted, {"status"});
    if (status.empty()) status = "True";
    return condition_status(pod, text(wanted, {"type"})) == status;
  });
}

bool matches_exit_code(const Json& rule, const Json& pod) {
  const Json* codes = field(rule, {"onExitCodes"});
  if (codes == nullptr) return false;
  const auto values = list(*codes, {"values"});
  for (const auto& container : list(pod, {"status", "containerStatuses"})) {
    const auto code = number(container, {"state", "terminated", "exitCode"});
    if (code == 0) continue;
    const bool listed = std::ranges::find(values, Json(code)) != values.end();
    if (listed == (text(*codes, {"operator"}) == "In")) return true;
  }
  return false;
}

/// The first rule that matches; it is asked only of pods in phase Failed. **Source:** KEP-3329.
PolicyAction action_for(const Json& job, const Json& pod) {
  for (const auto& rule : list(job, {"spec", "podFailurePolicy", "rules"})) {
    if (!matches_condition(rule, pod) && !matches_exit_code(rule, pod)) continue;
    const auto action = text(rule, {"action"});
    if (action == "Ignore") return PolicyAction::Ignore;
    if (action == "FailJob") return PolicyAction::FailJob;
    if (action == "FailIndex") return PolicyAction::FailIndex;
    return PolicyAction::Count;
  }
  return PolicyAction::Count;
}

void take_index(std::set<std::int64_t>& indexes, const Json& pod) {
  constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";
  if (const auto index = number(pod, {"metadata", "labels", kIndex}, -1); index >= 0) indexes.insert(index);
}

void count(JobAccount& account, const Json& job, const ObjectPtr& pod) {
  const auto phase = text(*pod, {"status", "phase"});
  const bool failed = phase == "Failed" || (!replaces_when_failed(job) && is_deleting(*pod) && phase != "Succeeded");
  if (phase == "Succeeded") {
    account.newly_succeeded.push_back(uid_of(*pod));
  } else if (failed) {
    const auto action = action_for(job, *pod);
    account.newly_ended.push_back(uid_of(*pod));
    if (action != PolicyAction::Ignore) account.newly_failed.push_back(uid_of(*pod));
    if (action == PolicyAction::FailIndex) take_index(account.failed_indexes, *pod);
    account.fail_job = account.fail_job || action == PolicyAction::FailJob;
  } else {
    return;
  }
  account.counted_now.push_back(pod);
}

}  // namespace

bool replaces_when_failed(const Json& job) {
  return text(job, {"spec", "podReplacementPolicy"}) == "Failed" || field(job, {"spec", "podFailurePolicy"}) != nullptr;
}

JobAccount account_for(const Json& job, const Objects& pods, const std::set<std::string>& counted) {
  JobAccount account;
  const auto uid = uid_of(job);
  for (const auto& [name, pod] : pods) {
    const Json* owner = controller_of(*pod);
    if (owner == nullptr || text(*owner, {"uid"}) != uid) continue;
    account.all.push_back(pod);
    const bool succeeded = text(*pod, {"status", "phase"}) == "Succeeded";
    if (!is_terminal(*pod) && !is_deleting(*pod)) {
      account.active.push_back(pod);
      account.ready += condition_status(*pod, "Ready") == "True" ? 1 : 0;
    }
    const bool ending = is_deleting(*pod) && !is_terminal(*pod);
    if (ending) ++account.terminating;
    if (succeeded || !is_terminal(*pod)) {
      if (!is_deleting(*pod) || succeeded || (ending && replaces_when_failed(job)))
        take_index(account.indexes_taken, *pod);
    }
    if (!counted.contains(uid_of(*pod))) count(account, job, pod);
  }
  // By name where the second is the same: the order must not depend on the sort.
  const auto age = [](const ObjectPtr& pod) {
    return std::pair(text(*pod, {"metadata", "creationTimestamp"}), name_of(*pod));
  };
  std::ranges::sort(account.active, [&](const ObjectPtr& a, const ObjectPtr& b) { return age(a) < age(b); });
  return account;
}

std::string failure_target(const Json& job) {
  for (const auto& condition : list(job, {"status", "conditions"})) {
    if (text(condition, {"type"}) == "FailureTarget") return text(condition, {"reason"});
  }
  return {};
}

bool is_complete(const Json& job, std::int64_t succeeded, const JobAccount& account) {
  const Json* completions = field(job, {"spec", "completions"});
  if (completions == nullptr || completions->is_null()) return succeeded > 0 && account.active.empty();
  return succeeded >= completions->get<std::int64_t>();
}

std::int64_t wanted_active(const Json& job, std::int64_t succeeded) {
  const auto parallelism = number(job, {"spec", "parallelism"}, 1);
  const Json* completions = field(job, {"spec", "completions"});
  if (completions == nullptr || completions->is_null()) return succeeded > 0 ? 0 : parallelism;
  return std::min(parallelism, completions->get<std::int64_t>() - succeeded);
}

}  // namespace dhc::sim
