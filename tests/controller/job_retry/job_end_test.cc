// What a Job has lost of which its own watch does not speak yet, under a policy that gives no retry back.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/failure_rules.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A Job that bears one loss, with a pod on a bad device and another on a good one.
JobStage with_two_pods(std::vector<k8s::JobFailureRule> rules = {}) {
  JobStage stage;
  stage.policy().job_retry.reset();
  stage.send_policy();
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.job().backoff_limit = 1;
  stage.job().failure_rules = std::move(rules);
  stage.upsert_job("train");
  return stage;
}

void disrupt(JobStage& stage, const std::string& pod) {
  stage.pod_named(pod).conditions.push_back(
      {.type = "DisruptionTarget", .status = "True", .reason = "DeletionByTaintManager"});
}

}  // namespace

TEST_CASE("A pod of a Job that goes without having been seen to fail counts until the Job's watch must show it") {
  auto stage = with_two_pods();
  stage.run_for(Seconds(50));
  SUBCASE("force-deleted") {}
  SUBCASE("its failure and its end come at once") { stage.end_pod("train-1", PodPhase::Failed); }
  SUBCASE("deleted before it ran") {
    stage.pod_named("train-1").phase = PodPhase::Pending;
    stage.upsert_pod("train-1");
  }
  stage.remove_pod("train-1");
  CHECK(stage.run_for(kUnseen - Seconds(1)).empty());
  const auto* held = stage.verdict("train-0", Reason::WouldEndJob);
  REQUIRE(held != nullptr);
  CHECK(held->next_at.has_value());
  CHECK(stage.run_for(Seconds(2)) == Names{"train-0"});
}

TEST_CASE("A pod that goes counts once, from its deletion on where its Job counts it then") {
  struct Case {
    std::string name;
    bool counts_at_deletion;
    std::function<void(k8s::Job&)> change;
  };
  const std::vector<Case> cases = {
      {"a plain Job", true, [](k8s::Job&) {}},
      {"podReplacementPolicy: Failed", false, [](k8s::Job& job) { job.replaces_when_failed = true; }},
      {"a podFailurePolicy", false,
       [](k8s::Job& job) { job.failure_rules = {on_condition(RuleAction::Count, "example.com/any")}; }},
  };
  for (const auto& one : cases) {
    for (const bool job_comes_late : {false, true}) {
      CAPTURE(one.name);
      CAPTURE(job_comes_late);
      auto stage = with_two_pods();
      one.change(stage.job());
      stage.job().backoff_limit = 2;
      if (!job_comes_late) stage.upsert_job("train");
      stage.run_for(Seconds(50));
      if (job_comes_late) {
        stage.deliver(k8s::Delivery(
            k8s::Remove{.kind = k8s::Kind::Job, .ns = stage.job().meta.ns, .name = "train", .uid = "uid-train"}));
      }
      // Its kubelet is gone: it terminates for ever.
      stage.pod_named("train-1").meta.deletion = stage.now().wall;
      stage.upsert_pod("train-1");
      stage.settle();
      stage.job().failed = one.counts_at_deletion ? 1 : 0;
      stage.upsert_job("train");
      stage.job().backoff_limit = one.counts_at_deletion ? 2 : 1;
      stage.upsert_job("train");
      CHECK(stage.run_for(kUnseen - Seconds(1)).empty());
      REQUIRE(stage.verdict("train-0", Reason::WouldEndJob) != nullptr);
      CHECK(stage.run_for(minutes(5), Seconds(5)) == (one.counts_at_deletion ? Names{"train-0"} : Names{}));
    }
  }
}

TEST_CASE("A pod that was away and runs again is no loss") {
  auto stage = with_two_pods();
  stage.run_for(Seconds(50));
  auto back = stage.pod_named("train-1");
  stage.remove_pod("train-1");
  stage.settle();
  stage.put(std::move(back));
  CHECK(stage.run_for(Seconds(15)) == Names{"train-0"});
}

TEST_CASE("A pod that ended well takes no retry when it goes") {
  auto stage = with_two_pods();
  stage.run_for(Seconds(50));
  stage.end_pod("train-1", PodPhase::Succeeded);
  stage.remove_pod("train-1");
  CHECK(stage.run_for(Seconds(15)) == Names{"train-0"});
}

TEST_CASE("A loss that a rule of the Job ignores holds nobody, however it is seen") {
  using Rules = std::vector<k8s::JobFailureRule>;
  const Rules ignores = {on_condition(RuleAction::Ignore, "DisruptionTarget")};
  struct Case {
    std::string name;
    std::function<void(JobStage&)> lose;
    bool ignored = true;
  };
  const std::vector<Case> cases = {
      {"failed",
       [](JobStage& stage) {
         disrupt(stage, "train-1");
         stage.end_pod("train-1", PodPhase::Failed);
       }},
      {"gone unseen",
       [](JobStage& stage) {
         disrupt(stage, "train-1");
         stage.upsert_pod("train-1");
         stage.settle();
         stage.remove_pod("train-1");
       }},
      {"going",
       [](JobStage& stage) {
         disrupt(stage, "train-1");
         stage.pod_named("train-1").meta.deletion = stage.now().wall + Seconds(300);
         stage.upsert_pod("train-1");
       }},
      {"failed by itself", [](JobStage& stage) { stage.end_pod("train-1", PodPhase::Failed); }, false},
      {"gone by itself", [](JobStage& stage) { stage.remove_pod("train-1"); }, false},
      {"deleted",
       [](JobStage& stage) {
         stage.pod_named("train-1").meta.deletion = stage.now().wall + Seconds(300);
         stage.upsert_pod("train-1");
       },
       false},
  };
  for (const auto& one : cases) {
    CAPTURE(one.name);
    // Our own eviction counts, so that the Job cannot spare the pod: only what the rule ignores is free.
    auto stage = with_two_pods({on_condition(RuleAction::Count, "example.com/ours"), ignores.front()});
    stage.pod_named("train-0").conditions.push_back({.type = "example.com/ours", .status = "True"});
    stage.upsert_pod("train-0");
    stage.run_for(Seconds(50));
    one.lose(stage);
    const auto gone = stage.run_for(Seconds(20));
    CHECK(gone == (one.ignored ? Names{"train-0"} : Names{}));
    CHECK((stage.verdict("train-0", Reason::WouldEndJob) != nullptr) == !one.ignored);
  }
}

TEST_CASE("A pod that fails before its Job is known counts, too") {
  auto stage = with_two_pods();
  stage.run_for(Seconds(50));
  const auto job = stage.job();
  stage.deliver(
      k8s::Delivery(k8s::Remove{.kind = k8s::Kind::Job, .ns = job.meta.ns, .name = "train", .uid = "uid-train"}));
  stage.settle();
  stage.end_pod("train-1", PodPhase::Failed);
  stage.settle();
  stage.upsert_job("train");
  CHECK(stage.run_for(Seconds(20)).empty());
  CHECK(stage.verdict("train-0", Reason::WouldEndJob) != nullptr);
}

TEST_CASE("A Job that was restored from before may have counted none of its failures") {
  auto stage = with_two_pods();
  stage.policy().after = minutes(3);
  stage.send_policy();
  stage.end_pod("train-1", PodPhase::Failed);
  stage.run_for(minutes(3) - Seconds(10));
  stage.deliver(k8s::Delivery(
      k8s::Snapshot{.kind = k8s::Kind::Job, .objects = {stage.job()}, .served = true, .went_back = true}));
  CHECK(stage.run_for(Seconds(25)).empty());
  REQUIRE(stage.verdict("train-0", Reason::WouldEndJob) != nullptr);
  CHECK(stage.run_for(Seconds(20)) == Names{"train-0"});
}

TEST_CASE("A pod that runs again after a restore is no loss, and counts anew when it fails") {
  auto stage = with_two_pods();
  stage.end_pod("train-1", PodPhase::Failed);
  stage.run_for(Seconds(50));
  stage.end_pod("train-1", PodPhase::Running);
  stage.settle();
  stage.end_pod("train-1", PodPhase::Failed);
  CHECK(stage.run_for(kUnseen - Seconds(1)).empty());
  CHECK(stage.verdict("train-0", Reason::WouldEndJob) != nullptr);
  CHECK(stage.run_for(Seconds(2)) == Names{"train-0"});
}

TEST_CASE("A loss that a new process sees both in the Job's credits and in the pod counts once") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().backoff_limit = 1;
  stage.upsert_job("train");
  CHECK(stage.run_for(Seconds(75)) == Names{"train-0"});
  REQUIRE(stage.states() == "given");
  stage.end_pod("train-0", PodPhase::Failed);
  stage.restart();
  stage.policy().job_retry.reset();
  stage.policy().after = Seconds(0);
  stage.send_policy();
  stage.settle();
  stage.remove_pod("train-0");
  stage.add_pod(1);
  // It bears two, and one was lost that neither watch shows as counted.
  REQUIRE(stage.job().backoff_limit == 2);
  CHECK(stage.run_for(Seconds(10)) == Names{"train-1"});
}

}  // namespace dhc::test
