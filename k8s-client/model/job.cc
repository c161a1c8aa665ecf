#include "k8s-client/model/job.h"

#include <algorithm>

namespace dhc::k8s {

namespace {

bool is_true(const Job& job, std::string_view type) {
  return std::ranges::any_of(
      job.conditions, [&](const Condition& condition) { return condition.type == type && condition.status == "True"; });
}

bool holds(const JobFailureRule::PodCondition& wanted, const PodEnd& end) {
  return std::ranges::any_of(end.conditions, [&](const Condition& condition) {
    return condition.type == wanted.type && condition.status == wanted.status;
  });
}

bool holds(const JobFailureRule::ExitCodes& wanted, const PodEnd& end) {
  return std::ranges::any_of(end.exits, [&](const ContainerExit& exit) {
    if (!wanted.container.empty() && !exit.container.empty() && exit.container != wanted.container) return false;
    return (std::ranges::find(wanted.values, exit.code) != wanted.values.end()) == wanted.in;
  });
}

bool matches(const JobFailureRule& rule, const PodEnd& end) {
  if (rule.on_exit_codes) return holds(*rule.on_exit_codes, end);
  return std::ranges::any_of(rule.on_pod_conditions, [&](const auto& wanted) { return holds(wanted, end); });
}

}  // namespace

bool is_finished(const Job& job) { return is_true(job, "Complete") || is_true(job, "Failed"); }

bool is_ending(const Job& job) {
  return is_finished(job) || is_true(job, "FailureTarget") || is_true(job, "SuccessCriteriaMet");
}

const Condition* failure_of(const Job& job) {
  const auto found = std::ranges::find_if(job.conditions, [](const Condition& condition) {
    return condition.status == "True" && (condition.type == "Failed" || condition.type == "FailureTarget");
  });
  return found == job.conditions.end() ? nullptr : &*found;
}

std::optional<JobFailureRule::Action> action_for(const Job& job, const PodEnd& end) {
  const auto found =
      std::ranges::find_if(job.failure_rules, [&](const JobFailureRule& rule) { return matches(rule, end); });
  if (found == job.failure_rules.end()) return std::nullopt;
  return found->action;
}

}  // namespace dhc::k8s
