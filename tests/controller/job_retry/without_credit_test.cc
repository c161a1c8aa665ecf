// Jobs under policies that give no retry back: a loss that would end the Job is not made.
#include <algorithm>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/failure_rules.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A Job with this limit, under a policy with `evict` and these rules for Jobs.
JobStage stage_with(std::int64_t backoff_limit, std::optional<JobRetryRules> rules = std::nullopt, int pods = 1) {
  JobStage stage;
  stage.policy().job_retry = rules;
  stage.send_policy();
  for (int pod = 0; pod < pods; ++pod) stage.add_pod(pod);
  stage.job().backoff_limit = backoff_limit;
  stage.upsert_job("train");
  return stage;
}

constexpr auto kNic = "example.com/nic";

/// The Job's pod holds a healthy GPU under the policy `p`, and a NIC that is bad under `nics`, which only evicts.
JobStage with_bad_nic(std::optional<JobRetryRules> of_gpus) {
  JobStage stage;
  stage.policy().match.resources = {std::string(kGpu)};
  stage.policy().job_retry = of_gpus;
  DevicePolicy nics = stage.policy();
  nics.name = "nics";
  nics.match.resources = {kNic};
  nics.job_retry.reset();
  stage.whole_policy().policies.push_back(nics);
  stage.send_policy();
  stage.add_pod(0, Health::Healthy);
  stage.pod_named("train-0").allocated.push_back({kNic, {{"nic-0", Health::Unhealthy, {}}}});
  stage.upsert_pod("train-0");
  return stage;
}

}  // namespace

TEST_CASE("Without jobRetry the pod of a Job that has no retry left is held, and the verdict says the way out") {
  for (const bool says_false : {false, true}) {
    auto stage = stage_with(0, says_false ? std::optional(JobRetryRules{.credit = false}) : std::nullopt);
    CHECK(stage.run_for(minutes(10), Seconds(5)).empty());
    CHECK(stage.patches().empty());
    CHECK(stage.reasons("train-0") == "WouldEndJob");
    const auto* held = stage.verdict("train-0", Reason::WouldEndJob);
    REQUIRE(held != nullptr);
    CHECK(held->message ==
          "the loss would end Job train: backoffLimit is 0, 0 of its pods have failed and 0 more are going; policy p "
          "gives no retry back: jobRetry: {} does, jobRetry: {credit: false, whenNotCreditable: Evict} evicts all the "
          "same");
    CHECK(stage.has_event("train-0", "WouldEndJob"));
    stage.restart();
    CHECK(stage.run_for(minutes(2), Seconds(5)).empty());
  }
}

TEST_CASE("A loss that the Job survives is made without jobRetry, up to the last retry and not beyond") {
  for (const std::int64_t failed : {0, 1, 2}) {
    auto stage = stage_with(2);
    stage.job().failed = failed;
    stage.upsert_job("train");
    CHECK(stage.run_for(minutes(2), Seconds(5)) == (failed < 2 ? Names{"train-0"} : Names{}));
    CHECK(stage.patches().empty());
  }
  auto counting = stage_with(1);
  counting.job().uncounted = 1;
  counting.upsert_job("train");
  CHECK(counting.run_for(minutes(2), Seconds(5)).empty());
}

TEST_CASE("whenNotCreditable: Evict without credits lets the Job end") {
  auto stage = stage_with(0, JobRetryRules{.credit = false, .not_creditable = JobRetryRules::NotCreditable::Evict});
  CHECK(stage.run_for(minutes(2), Seconds(5)) == Names{"train-0"});
  CHECK(stage.patches().empty());
}

TEST_CASE("Pods that go together are counted together, also those that somebody else deletes") {
  auto together = stage_with(2, std::nullopt, 3);
  CHECK(together.run_counted(minutes(3)) == Names{"train-0", "train-1"});
  CHECK(together.verdict("train-2", Reason::WouldEndJob) != nullptr);

  auto drained = stage_with(1, std::nullopt, 2);
  drained.report("train-1", Health::Healthy);
  drained.pod_named("train-1").meta.deletion = drained.now().wall + Seconds(30);
  drained.upsert_pod("train-1");
  CHECK(drained.run_for(Seconds(25), Seconds(5)).empty());
  drained.job().failed = 1;
  drained.upsert_job("train");
  CHECK(drained.run_for(minutes(2), Seconds(5)).empty());
  drained.remove_pod("train-1");
  CHECK(drained.run_for(minutes(2), Seconds(5)).empty());
}

TEST_CASE("A pod that has failed counts for 30 s although the Job does not show it yet") {
  auto stage = stage_with(1, std::nullopt, 2);
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(50));
  stage.end_pod("train-1", k8s::PodPhase::Failed);
  CHECK(stage.run_for(Millis(29'999), Millis(1000)).empty());
  const auto* held = stage.verdict("train-0", Reason::WouldEndJob);
  REQUIRE(held != nullptr);
  CHECK(held->next_at.has_value());
  CHECK(stage.run_for(Millis(1001), Millis(1)) == Names{"train-0"});
}

TEST_CASE("Rules that end the Job or an index without a retry hold the pod, and those that ignore the loss do not") {
  struct Case {
    bool held;
    std::function<void(k8s::Job&, k8s::Pod&)> change;
  };
  const std::vector<Case> cases = {
      {true,
       [](auto& job, auto&) {
         job.backoff_limit = 6;
         job.failure_rules = {on_condition(RuleAction::FailJob, "DisruptionTarget")};
       }},
      {true,
       [](auto& job, auto& pod) {
         job.backoff_limit = 2147483647;
         job.backoff_limit_per_index = 0;
         pod.meta.annotations = {{"batch.kubernetes.io/job-completion-index", "3"}};
       }},
      {false,
       [](auto& job, auto&) {
         job.backoff_limit = 2147483647;
         job.backoff_limit_per_index = 1;
       }},
      {false, [](auto& job, auto&) { job.failure_rules = {on_condition(RuleAction::Ignore, "DisruptionTarget")}; }},
      {false,
       [](auto& job, auto&) {
         job.failure_rules = {on_condition(RuleAction::Ignore, "device-health.io/DeviceUnhealthy")};
       }},
      {true, [](auto& job, auto&) { job.suspended = true; }},
      {true,
       [](auto& job, auto&) { job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "s", "u"}; }},
  };
  for (const auto& what : cases) {
    auto stage = stage_with(0);
    what.change(stage.job(), stage.pod_named("train-0"));
    stage.upsert_job("train");
    stage.upsert_pod("train-0");
    CHECK(stage.run_for(minutes(2), Seconds(5)) == (what.held ? Names{} : Names{"train-0"}));
    CHECK((stage.verdict("train-0", Reason::WouldEndJob) != nullptr) == what.held);
  }
}

TEST_CASE("In observe mode the verdict is the one that enforcing would give") {
  auto stage = stage_with(0);
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.reasons("train-0") == "WouldEndJob");
  auto survives = stage_with(1);
  survives.policy().mode = Mode::Observe;
  survives.send_policy();
  survives.run_for(minutes(2), Seconds(5));
  CHECK(survives.reasons("train-0") == "WouldEvict");
}

TEST_CASE("A pod whose NIC falls under a policy without jobRetry is credited as the policy of its GPU says") {
  auto stage = with_bad_nic(JobRetryRules{});
  CHECK(stage.run_for(minutes(2)) == Names{"train-0"});
  CHECK(stage.job().backoff_limit == 1);
  CHECK(stage.patches().size() == 1);
  CHECK(stage.credits().credits[0].device == "node-a/example.com/nic/nic-0");
}

TEST_CASE("The strictest policy that covers any device of the pod counts") {
  // The GPU's policy holds what it cannot credit, although the NIC's own would only count.
  auto spent = with_bad_nic(JobRetryRules{});
  spent.job().suspended = true;
  spent.upsert_job("train");
  CHECK(spent.run_for(minutes(2), Seconds(5)).empty());
  CHECK(spent.verdict("train-0", Reason::NotCreditable) != nullptr);

  // The GPU's policy lets a Job end, and the NIC's does not.
  auto lenient = with_bad_nic(JobRetryRules{.credit = false, .not_creditable = JobRetryRules::NotCreditable::Evict});
  CHECK(lenient.run_for(minutes(2), Seconds(5)).empty());
  CHECK(lenient.verdict("train-0", Reason::WouldEndJob) != nullptr);

  // The GPU's policy only observes: what it would do binds nobody.
  auto observing = with_bad_nic(JobRetryRules{});
  observing.policy().mode = Mode::Observe;
  observing.send_policy();
  CHECK(observing.run_for(minutes(2), Seconds(5)).empty());
  CHECK(observing.patches().empty());
  CHECK(observing.verdict("train-0", Reason::WouldEndJob) != nullptr);

  // Two that credit: the fewest retries, so neither waits for a credit that the other refuses.
  auto fewest = with_bad_nic(JobRetryRules{.max_per_job = 1});
  fewest.whole_policy().policies[1].job_retry =
      JobRetryRules{.max_per_job = 5, .not_creditable = JobRetryRules::NotCreditable::Evict};
  fewest.send_policy();
  CHECK(fewest.run_for(minutes(2)) == Names{"train-0"});
  fewest.add_pod(1, Health::Healthy);
  fewest.pod_named("train-1").allocated.push_back({kNic, {{"nic-1", Health::Unhealthy, {}}}});
  fewest.upsert_pod("train-1");
  CHECK(fewest.run_for(minutes(2), Seconds(5)).empty());
  CHECK(fewest.verdict("train-1", Reason::CreditLimitReached) != nullptr);
}

TEST_CASE("A pod whose eviction was in doubt is not going any more once it has stood for an hour") {
  auto stage = stage_with(1, std::nullopt, 2);
  stage.report("train-1", Health::Healthy);
  stage.answer_evictions([](const auto&) { return fail(ErrorKind::TimedOut, "no answer"); });
  stage.run_for(Seconds(62));
  CHECK(std::ranges::count(stage.writes(), "evict train-0") == 1);
  stage.report("train-0", Health::Healthy);
  stage.report("train-1", Health::Unhealthy);
  stage.answer_evictions([](const auto&) { return Status{}; });
  CHECK(stage.run_for(minutes(59), Seconds(5)).empty());
  CHECK(stage.reasons("train-1") == "WouldEndJob");
  CHECK(stage.run_for(minutes(3), Seconds(5)) == Names{"train-1"});
}

}  // namespace dhc::test
