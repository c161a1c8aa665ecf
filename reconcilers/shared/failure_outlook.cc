#include "reconcilers/shared/failure_outlook.h"

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "domain/contract/names.h"

namespace dhc {

namespace {

using RuleAction = k8s::JobFailureRule::Action;

// What SIGTERM and SIGKILL make of a container that does not handle them: its exit code is not known before.
constexpr std::array<std::int64_t, 2> kKilledCodes = {143, 137};

bool ends_more(std::optional<RuleAction> action) {
  return action == RuleAction::FailJob || action == RuleAction::FailIndex;
}

void set_condition(k8s::SharedList<k8s::Condition>& conditions, std::string_view type, std::string_view status) {
  conditions.erase_if([&](const k8s::Condition& condition) { return condition.type == type; });
  conditions.push_back({.type = std::string(type), .status = std::string(status)});
}

/// How the pod looks when it has ended. **Source:** core/v1: no ended pod is ready.
k8s::PodEnd end_of(const k8s::Pod& pod, bool with_our_condition) {
  k8s::PodEnd end{.conditions = pod.conditions, .exits = {}};
  for (const auto type : {"Ready", "ContainersReady"}) set_condition(end.conditions, type, "False");
  if (with_our_condition) set_condition(end.conditions, kConditionType, "True");
  return end;
}

/// And when it has been evicted.
k8s::PodEnd evicted_end(const k8s::Pod& pod, bool with_our_condition) {
  auto end = end_of(pod, with_our_condition);
  set_condition(end.conditions, kDisruptionTarget, "True");
  return end;
}

/// The exit codes that a program may choose: each that a rule names, and one that none does.
std::set<std::int64_t> own_codes(const k8s::Job& job) {
  std::set<std::int64_t> codes;
  for (const auto& rule : job.failure_rules) {
    if (rule.on_exit_codes) codes.insert(rule.on_exit_codes->values.begin(), rule.on_exit_codes->values.end());
  }
  if (codes.empty()) return codes;
  for (const auto code : kKilledCodes) codes.insert(code);
  std::int64_t other = 1;
  while (codes.contains(other)) ++other;
  codes.insert(other);
  codes.erase(0);
  return codes;
}

}  // namespace

Counts counts(const k8s::Job& job, const std::vector<k8s::PodEnd>& ends) {
  bool never = true;
  for (const auto& end : ends) {
    const auto action = k8s::action_for(job, end);
    if (ends_more(action)) return Counts::EndsTheJob;
    never = never && action == RuleAction::Ignore;
  }
  return never ? Counts::Never : Counts::Maybe;
}

Counts outlook_of_exit(const k8s::Job& job, const k8s::Pod& pod, bool with_our_condition) {
  auto end = end_of(pod, with_our_condition);
  std::vector<k8s::PodEnd> ends;
  auto codes = own_codes(job);
  if (codes.empty()) codes.insert(1);
  for (const auto code : codes) {
    end.exits = {{.container = {}, .code = code}};
    ends.push_back(end);
  }
  return counts(job, ends);
}

Counts outlook_of_loss(const k8s::Job& job, const k8s::PodEnd& end, bool was_seen) {
  if (job.failure_rules.empty()) return Counts::Maybe;
  std::vector<k8s::PodEnd> ends = {end};
  if (was_seen) return counts(job, ends);
  for (const auto type : {"Ready", "ContainersReady"}) set_condition(ends.front().conditions, type, "False");
  for (const auto code : own_codes(job)) {
    ends.push_back(ends.front());
    ends.back().exits = {{.container = {}, .code = code}};
  }
  return counts(job, ends);
}

Outlook outlook_of_eviction(const k8s::Job& job, const k8s::Pod& pod, bool with_our_condition) {
  auto end = evicted_end(pod, with_our_condition);
  std::vector<k8s::PodEnd> ends = {end};
  for (const auto code : kKilledCodes) {
    end.exits = {{.container = {}, .code = code}};
    ends.push_back(end);
  }
  Outlook outlook{.counts = counts(job, ends), .ending_codes = {}};
  if (outlook.counts != Counts::Never) return outlook;
  for (const auto code : own_codes(job)) {
    end.exits = {{.container = {}, .code = code}};
    const auto action = k8s::action_for(job, end);
    if (ends_more(action)) {
      outlook.ending_codes.push_back(code);
    } else if (action != RuleAction::Ignore) {
      outlook.counts = Counts::Maybe;
    }
  }
  return outlook;
}

}  // namespace dhc
