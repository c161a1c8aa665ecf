#include "reconcilers/shared/failure_outlook.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/contract/names.h"

namespace dhc {

namespace {

using RuleAction = k8s::JobFailureRule::Action;
using Codes = std::vector<std::int64_t>;

k8s::JobFailureRule on_condition(RuleAction action, std::string_view type, std::string status = "True") {
  return {.action = action,
          .on_pod_conditions = {{.type = std::string(type), .status = std::move(status)}},
          .on_exit_codes = {}};
}

k8s::JobFailureRule on_codes(RuleAction action, Codes values, bool in = true, std::string container = {}) {
  return {.action = action,
          .on_pod_conditions = {},
          .on_exit_codes =
              k8s::JobFailureRule::ExitCodes{.container = std::move(container), .in = in, .values = std::move(values)}};
}

k8s::JobFailureRule ignores_disruptions() { return on_condition(RuleAction::Ignore, kDisruptionTarget); }

k8s::Job job_with(std::vector<k8s::JobFailureRule> rules) {
  k8s::Job job;
  job.failure_rules = std::move(rules);
  return job;
}

Outlook outlook_of(std::vector<k8s::JobFailureRule> rules, bool with_our_condition = true, const k8s::Pod& pod = {}) {
  return outlook_of_eviction(job_with(std::move(rules)), pod, with_our_condition);
}

k8s::PodEnd ended_with(std::int64_t code) { return {.conditions = {}, .exits = {{.container = "main", .code = code}}}; }

}  // namespace

TEST_CASE("A program that ends itself is no disruption: only a rule for our condition, or for its code, forgives it") {
  const auto exit = [](std::vector<k8s::JobFailureRule> rules, bool with_our_condition = true) {
    return outlook_of_exit(job_with(std::move(rules)), {}, with_our_condition);
  };
  CHECK(exit({}) == Counts::Maybe);
  CHECK(exit({ignores_disruptions()}) == Counts::Maybe);
  CHECK(exit({on_condition(RuleAction::Ignore, kConditionType)}) == Counts::Never);
  CHECK(exit({on_condition(RuleAction::Ignore, kConditionType)}, false) == Counts::Maybe);
  CHECK(exit({on_codes(RuleAction::FailJob, {42})}) == Counts::EndsTheJob);
  CHECK(exit({on_codes(RuleAction::FailJob, {42}, false)}) == Counts::EndsTheJob);
  CHECK(exit({on_condition(RuleAction::Ignore, kConditionType), on_codes(RuleAction::FailJob, {42})}) == Counts::Never);
  CHECK(exit({on_codes(RuleAction::FailJob, {42}), on_condition(RuleAction::Ignore, kConditionType)}) ==
        Counts::EndsTheJob);
  CHECK(exit({on_codes(RuleAction::Ignore, {0}, false)}) == Counts::Never);
}

TEST_CASE("What counts against a Job is what the first rule that matches says, and no rule counts") {
  const auto of = [](RuleAction action) { return counts(job_with({on_codes(action, {7})}), {ended_with(7)}); };
  CHECK(of(RuleAction::Ignore) == Counts::Never);
  CHECK(of(RuleAction::Count) == Counts::Maybe);
  CHECK(of(RuleAction::FailJob) == Counts::EndsTheJob);
  CHECK(of(RuleAction::FailIndex) == Counts::EndsTheJob);
  CHECK(counts(job_with({}), {ended_with(7)}) == Counts::Maybe);
  CHECK(counts(job_with({on_codes(RuleAction::Ignore, {7})}), {ended_with(8)}) == Counts::Maybe);
  CHECK(counts(job_with({on_codes(RuleAction::Ignore, {7}), on_codes(RuleAction::FailJob, {7})}), {ended_with(7)}) ==
        Counts::Never);
  CHECK(counts(job_with({on_codes(RuleAction::FailJob, {7}), on_codes(RuleAction::Ignore, {7})}), {ended_with(7)}) ==
        Counts::EndsTheJob);
}

TEST_CASE("Of several ways in which a pod may end the worst decides, in any order") {
  const auto job = job_with({on_codes(RuleAction::Ignore, {1, 2}), on_codes(RuleAction::Count, {3}),
                             on_codes(RuleAction::FailJob, {4}), on_codes(RuleAction::FailIndex, {5})});
  const auto of = [&](Codes codes) {
    std::ranges::sort(codes);
    std::vector<Counts> all;
    do {
      std::vector<k8s::PodEnd> ends;
      for (const auto code : codes) ends.push_back(ended_with(code));
      all.push_back(counts(job, ends));
    } while (std::ranges::next_permutation(codes).found);
    CHECK(std::ranges::count(all, all.front()) == static_cast<std::ptrdiff_t>(all.size()));
    return all.front();
  };
  CHECK(of({1, 2}) == Counts::Never);
  CHECK(of({1, 2, 3}) == Counts::Maybe);
  CHECK(of({1, 2, 9}) == Counts::Maybe);
  CHECK(of({1, 3, 4}) == Counts::EndsTheJob);
  CHECK(of({1, 3, 5}) == Counts::EndsTheJob);
}

TEST_CASE("Without a podFailurePolicy an eviction may count, and nothing ends the Job") {
  const auto outlook = outlook_of({});
  CHECK(outlook.counts == Counts::Maybe);
  CHECK(outlook.ending_codes.empty());
}

TEST_CASE("A Job that ignores disruptions first loses nothing by an eviction, whatever else ends it") {
  const auto outlook = outlook_of({ignores_disruptions(), on_codes(RuleAction::FailJob, {137, 143, 42})});
  CHECK(outlook.counts == Counts::Never);
  CHECK(outlook.ending_codes.empty());
}

TEST_CASE("The code of SIGTERM or SIGKILL that ends the Job or its index ends it by our eviction") {
  for (const auto action : {RuleAction::FailJob, RuleAction::FailIndex}) {
    for (const std::int64_t code : {143, 137}) {
      CAPTURE(code);
      const auto outlook = outlook_of({on_codes(action, {code}), ignores_disruptions()});
      CHECK(outlook.counts == Counts::EndsTheJob);
      CHECK(outlook.ending_codes.empty());
    }
  }
  for (const std::int64_t code : {136, 138, 142, 144}) {
    CAPTURE(code);
    CHECK(outlook_of({on_codes(RuleAction::FailJob, {code}), ignores_disruptions()}).counts == Counts::Never);
  }
}

TEST_CASE("A code that the program chooses ends no Job by our eviction, but is named") {
  for (const auto action : {RuleAction::FailJob, RuleAction::FailIndex}) {
    const auto outlook = outlook_of({on_codes(action, {42, 3, 42}), ignores_disruptions()});
    CHECK(outlook.counts == Counts::Never);
    CHECK(outlook.ending_codes == Codes{3, 42});
  }
  // One behind the rule that ignores the disruption is never asked.
  CHECK(outlook_of({ignores_disruptions(), on_codes(RuleAction::FailJob, {42})}).ending_codes.empty());
}

TEST_CASE("A code that the program chooses and that counts makes the loss one that may count") {
  auto outlook = outlook_of({on_codes(RuleAction::Count, {42}), ignores_disruptions()});
  CHECK(outlook.counts == Counts::Maybe);
  CHECK(outlook.ending_codes.empty());
  outlook = outlook_of({on_codes(RuleAction::Count, {42}), on_codes(RuleAction::FailJob, {43}), ignores_disruptions()});
  CHECK(outlook.counts == Counts::Maybe);
  CHECK(outlook.ending_codes == Codes{43});
}

TEST_CASE("A rule on every code but some is asked with the first code that no rule names") {
  const auto not_in = [](Codes codes) {
    return outlook_of({on_codes(RuleAction::FailJob, std::move(codes), false), ignores_disruptions()});
  };
  CHECK(not_in({137, 143}).counts == Counts::Never);
  CHECK(not_in({137, 143}).ending_codes == Codes{1});
  CHECK(not_in({2, 1, 137, 143}).ending_codes == Codes{3});
  CHECK(not_in({137}).counts == Counts::EndsTheJob);
  CHECK(not_in({0}).counts == Counts::EndsTheJob);
}

TEST_CASE("A pod that handles SIGTERM and ends with code 0 is asked about too") {
  CHECK(outlook_of({on_codes(RuleAction::Ignore, {0}, false)}).counts == Counts::Maybe);
  CHECK(outlook_of({on_codes(RuleAction::Ignore, {0}, false), ignores_disruptions()}).counts == Counts::Never);
  CHECK(outlook_of({on_codes(RuleAction::Ignore, {0}, false), on_condition(RuleAction::FailJob, kDisruptionTarget)})
            .counts == Counts::EndsTheJob);
}

TEST_CASE("No program fails with code 0") {
  const auto outlook = outlook_of({on_codes(RuleAction::FailJob, {0}), ignores_disruptions()});
  CHECK(outlook.counts == Counts::Never);
  CHECK(outlook.ending_codes.empty());
}

TEST_CASE("The largest and smallest codes that can be written are taken as they are") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  const auto outlook = outlook_of({on_codes(RuleAction::FailJob, {kMost, kLeast, -1}), ignores_disruptions()});
  CHECK(outlook.counts == Counts::Never);
  CHECK(outlook.ending_codes == Codes{kLeast, -1, kMost});
}

TEST_CASE("A rule that names a container is asked too: any of the pod's may end so") {
  const auto outlook = outlook_of({on_codes(RuleAction::FailJob, {143}, true, "sidecar"), ignores_disruptions()});
  CHECK(outlook.counts == Counts::EndsTheJob);
}

TEST_CASE("A rule on our own condition matches only where the pod bears it") {
  CHECK(outlook_of({on_condition(RuleAction::Ignore, kConditionType)}, true).counts == Counts::Never);
  CHECK(outlook_of({on_condition(RuleAction::Ignore, kConditionType)}, false).counts == Counts::Maybe);
  const std::vector rules = {on_condition(RuleAction::FailJob, kConditionType), ignores_disruptions()};
  CHECK(outlook_of(rules, true).counts == Counts::EndsTheJob);
  CHECK(outlook_of(rules, false).counts == Counts::Never);
  k8s::Pod recovered;
  recovered.conditions = {{.type = std::string(kConditionType), .status = "False"}};
  const std::vector on_false = {on_condition(RuleAction::Ignore, kConditionType, "False")};
  CHECK(outlook_of(on_false, false, recovered).counts == Counts::Never);
  CHECK(outlook_of(on_false, true, recovered).counts == Counts::Maybe);
}

TEST_CASE("An evicted pod is disrupted and not ready, whatever it says now, and else as it is") {
  k8s::Pod pod;
  pod.conditions = {{.type = "Ready", .status = "True"},
                    {.type = "ContainersReady", .status = "True"},
                    {.type = std::string(kDisruptionTarget), .status = "False"},
                    {.type = "PodScheduled", .status = "True"}};
  const auto ignored_on = [&](std::string_view type, const std::string& status) {
    return outlook_of({on_condition(RuleAction::Ignore, type, status)}, true, pod).counts == Counts::Never;
  };
  for (const auto* type : {"Ready", "ContainersReady"}) {
    CHECK(ignored_on(type, "False"));
    CHECK(!ignored_on(type, "True"));
  }
  CHECK(ignored_on(kDisruptionTarget, "True"));
  CHECK(!ignored_on(kDisruptionTarget, "False"));
  CHECK(ignored_on("PodScheduled", "True"));
  CHECK(!ignored_on("PodScheduled", "False"));
}

}  // namespace dhc
