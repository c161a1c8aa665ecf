// Pods that died of a device of which the driver says something else than Unhealthy.
#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::minutes;

namespace {

k8s::SliceDevice device(std::vector<k8s::Taint> taints) { return {.name = "gpu-0", .taints = std::move(taints)}; }

k8s::Taint information(std::string value) {
  return {.key = "gpu.example.com/xid", .value = std::move(value), .effect = "None"};
}

/// A Job's pod on a DRA device of which the kubelet says Unknown for ever.
JobStage silent_device() {
  JobStage stage;
  stage.policy().match.message = MessagePattern::compile("Xid").value();
  stage.policy().match.device_taints = {{.key = "gpu.example.com/*", .value = "79", .effect = "*"}};
  stage.send_policy();
  publish(stage, {device({})});
  stage.claim("train-claim", {"gpu-0"}, "train-0");
  stage.pod({.name = "train-0", .owner = "Job/train", .health = Health::Unknown, .claim = "train-claim"});
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(5));
  return stage;
}

}  // namespace

TEST_CASE("A pod that died under a taint that a policy names has died of its device") {
  auto stage = silent_device();
  SUBCASE("before it ended") {
    publish(stage, {device({information("79")})});
    stage.run_for(Seconds(2));
    SUBCASE("and is taken away right after it") {
      stage.end_pod("train-0", PodPhase::Failed);
      stage.run_for(Seconds(1));
      publish(stage, {device({})});
    }
    SUBCASE("and it stays") { stage.end_pod("train-0", PodPhase::Failed); }
  }
  SUBCASE("soon after it") {
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(minutes(5), Seconds(10));
    publish(stage, {device({information("79")})});
  }
  stage.run_for(Seconds(2));
  REQUIRE(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
  CHECK(stage.verdict("train", Reason::DiedOfDevice)->message.contains("has tainted it"));
  CHECK(stage.job().backoff_limit == 4);
}

TEST_CASE("A pod that died under a taint that no policy names, or long before it, has not died of it") {
  auto stage = silent_device();
  SUBCASE("another value") {
    publish(stage, {device({information("43")})});
    stage.run_for(Seconds(2));
    stage.end_pod("train-0", PodPhase::Failed);
  }
  SUBCASE("ten minutes later") {
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(minutes(10), Seconds(10));
    publish(stage, {device({information("79")})});
  }
  stage.run_for(Seconds(2));
  CHECK(stage.verdict("train", Reason::DiedOfDevice) == nullptr);
  CHECK(stage.job().backoff_limit == 3);
}

TEST_CASE("A pod that died under another word of the kubelet that a policy names has died of its device") {
  for (const bool is_named : {true, false}) {
    CAPTURE(is_named);
    JobStage stage;
    if (is_named) stage.policy().match.health_words = {"PermanentlyUnhealthy"};
    stage.send_policy();
    stage.add_pod(0, Health::Unknown);
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.pod_named("train-0").allocated.front().devices.front().other_word = "PermanentlyUnhealthy";
    stage.upsert_pod("train-0");
    stage.run_for(Seconds(2));
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(Seconds(2));
    CHECK((stage.verdict("train", Reason::DiedOfDevice) != nullptr) == is_named);
    CHECK(stage.job().backoff_limit == (is_named ? 4 : 3));
  }
}

}  // namespace dhc::test
