// What becomes of a credit after it was given.
#include <optional>
#include <variant>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A Job whose first pod was credited, and whose device has been healthy for the policy's time since.
JobStage with_unspent() {
  JobStage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.run_for(Seconds(61));
  stage.report("train-0", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  REQUIRE(stage.states() == "unspent");
  return stage;
}

}  // namespace

TEST_CASE("An evicted pod that succeeds after the Job may have counted it has spent its credit") {
  for (const bool counted_at_the_end : {false, true}) {
    JobStage stage;
    stage.add_pod(0);
    stage.job().replaces_when_failed = counted_at_the_end;
    stage.upsert_job("train");
    REQUIRE(stage.run_for(Seconds(71)) == Names{"train-0"});
    stage.job().failed = counted_at_the_end ? 0 : 1;
    stage.upsert_job("train");
    stage.end_pod("train-0", PodPhase::Succeeded);
    stage.run_for(Seconds(2));
    CHECK(stage.states() == (counted_at_the_end ? "unspent" : "spent"));
    stage.add_pod(1);
    stage.run_for(Seconds(62));
    CHECK(stage.job().backoff_limit == (counted_at_the_end ? 1 : 2));
  }
}

TEST_CASE("Nobody is evicted on a credit that we have just taken back, while the watch of Jobs still shows it") {
  JobStage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.run_for(Seconds(61));
  REQUIRE(stage.states() == "given");
  stage.report("train-0", Health::Healthy);
  std::optional<Action> taken_back;
  for (int second = 0; second < 700 && !taken_back; ++second) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<job_retry::PatchJob>(action)) taken_back = action;
      stage.answer(action);
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(taken_back.has_value());
  stage.policy().evict->after = Seconds(0);
  stage.policy().after = Seconds(0);
  stage.send_policy();
  stage.report("train-0", Health::Unhealthy);
  CHECK(stage.run_for(minutes(4)).empty());
  CHECK(stage.reasons("train-0").find("WaitingForCredit") != std::string::npos);
  stage.show(*taken_back);
  CHECK(stage.run_for(minutes(2)) == Names{"train-0"});
  CHECK(stage.states() == "given");
}

TEST_CASE("An unspent credit is spent by the crash of its own pod") {
  auto stage = with_unspent();
  stage.report("train-0", Health::Unhealthy);
  stage.run_for(Seconds(5));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(2));
  CHECK(stage.states() == "spent");
  CHECK(stage.job().backoff_limit == 1);
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(Seconds(62));
  CHECK(stage.job().backoff_limit == 2);
}

TEST_CASE("An unspent credit is spent by whatever else its pod is lost to") {
  auto failed = with_unspent();
  failed.end_pod("train-0", PodPhase::Failed);
  failed.run_for(Seconds(70));
  CHECK(failed.states() == "spent");

  auto deleted = with_unspent();
  deleted.pod_named("train-0").meta.deletion = deleted.now().wall;
  deleted.upsert_pod("train-0");
  deleted.run_for(Seconds(2));
  CHECK(deleted.states() == "given");
  deleted.remove_pod("train-0");
  deleted.run_for(kUnseen + Seconds(1));
  CHECK(deleted.states() == "spent");
}

TEST_CASE("A credit is not unspent while its pod is still on another bad device") {
  JobStage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.add_pod(0);
  auto& pod = stage.pod_named("train-0");
  pod.allocated[0].devices.push_back({"gpu-7", Health::Unhealthy, {}});
  stage.upsert_pod("train-0");
  stage.run_for(Seconds(61));
  REQUIRE(stage.states() == "given");
  stage.pod_named("train-0").allocated[0].devices[0].health = Health::Healthy;
  stage.upsert_pod("train-0");
  stage.run_for(minutes(12), Seconds(10));
  CHECK(stage.states() == "given");
  CHECK(stage.patches().size() == 1);
}

TEST_CASE("A limit is never lowered by a patch that does not name the version, nor while paused") {
  for (const bool paused : {false, true}) {
    JobStage stage;
    stage.policy().job_retry->take_back = true;
    stage.send_policy();
    stage.add_pod(0);
    stage.add_pod(1, Health::Healthy);
    stage.run_for(Seconds(61));
    if (paused) stage.limits().paused = true;
    stage.send_policy();
    stage.end_pod("train-0", PodPhase::Succeeded);
    int lowering = 0;
    for (int round = 0; round < 60; ++round) {
      for (const auto& action : stage.turn()) {
        const auto* patch = std::get_if<job_retry::PatchJob>(&action);
        if (patch == nullptr || patch->limit >= patch->limit_before) {
          stage.answer(action);
          if (patch == nullptr) continue;
          for (const auto& note : patch->notes) stage.job().meta.annotations = {{note.annotation, note.text}};
          stage.upsert_job("train");
          continue;
        }
        ++lowering;
        CHECK(!patch->by_test);
        stage.answer(action, fail(ErrorKind::Conflict, "the object has been modified"));
        stage.upsert_job("train");
      }
      stage.advance(Seconds(10));
    }
    if (paused) CHECK(lowering == 0);
    if (!paused) CHECK(lowering > 4);
  }
}

TEST_CASE("The credit of a pod that a suspension removed pays for the next loss") {
  for (const bool counted : {false, true}) {
    JobStage stage;
    stage.policy().job_retry->max_per_job = 1;
    stage.policy().evict->after = minutes(30);
    stage.send_policy();
    stage.add_pod(0);
    stage.run_for(Seconds(62));
    REQUIRE(stage.states() == "given");
    stage.job().suspended = true;
    if (counted) stage.job().failed = 1;
    stage.upsert_job("train");
    stage.remove_pod("train-0");
    stage.run_for(Seconds(70));
    stage.job().suspended = false;
    stage.upsert_job("train");
    stage.add_pod(1, Health::Healthy);
    stage.run_for(Seconds(5));
    CHECK(stage.states() == (counted ? "spent" : "unspent"));
    stage.report("train-1", Health::Unhealthy);
    stage.run_for(Seconds(70));
    CHECK((stage.verdict("train-1", Reason::CreditLimitReached) != nullptr) == counted);
    CHECK(stage.job().backoff_limit == 1);
  }
}

TEST_CASE("A pod that finds no room for its credit is not said to get one, with however many bad devices") {
  JobStage stage;
  stage.policy().job_retry->max_per_job = 1;
  stage.send_policy();
  stage.add_pod(0);
  stage.add_pod(1);
  auto& pod = stage.pod_named("train-1");
  pod.allocated[0].devices.push_back({"gpu-7", Health::Unhealthy, {}});
  stage.upsert_pod("train-1");
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  stage.turn();
  CHECK(stage.verdict("train-0", Reason::Crediting) != nullptr);
  CHECK(stage.verdict("train-1", Reason::Crediting) == nullptr);
}

TEST_CASE(
    "A pod with a second bad device under a policy without jobRetry is not evicted before its credit has settled") {
  JobStage stage;
  auto& policies = stage.whole_policy().policies;
  policies.push_back(policies.front());
  policies[0].match.resources = {std::string(kGpu)};
  policies[1].name = "q";
  policies[1].match.resources = {"example.com/nic"};
  policies[1].job_retry.reset();
  stage.send_policy();
  stage.node("node-a", 8, 4);
  stage.node_named("node-a").capacity.push_back({"example.com/nic", 2});
  stage.node_named("node-a").allocatable.push_back({"example.com/nic", 1});
  stage.put(stage.node_named("node-a"));
  stage.add_pod(0);
  auto& pod = stage.pod_named("train-0");
  pod.requests.push_back({"example.com/nic", 1});
  pod.allocated.push_back({"example.com/nic", {{"nic-0", Health::Unhealthy, {}}}});
  stage.upsert_pod("train-0");
  CHECK(stage.run_for(Millis(60'000)).empty());
  CHECK(stage.job().backoff_limit == 1);
  CHECK(stage.run_for(Millis(9'999), Millis(9'999)).empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"train-0"});
}

}  // namespace dhc::test
