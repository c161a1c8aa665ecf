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

/// Kubernetes deletes the pod, and its kubelet ends it: `reason` is that of its DisruptionTarget.
void disrupt(JobStage& stage, const std::string& name, const std::string& reason) {
  auto& pod = stage.pod_named(name);
  pod.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = reason});
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  stage.upsert_pod(name);
  stage.run_for(Seconds(1));
  stage.end_pod(name, PodPhase::Failed);
  stage.run_for(Seconds(2));
}

constexpr auto kByTaint = "DeletionByDeviceTaintManager";

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

TEST_CASE("A pod that Kubernetes deletes for the NoExecute of a bad device gets its Job the retry back") {
  const auto no_execute = [](std::string value) {
    return k8s::Taint{.key = "gpu.example.com/xid", .value = std::move(value), .effect = "NoExecute"};
  };
  auto stage = silent_device();
  bool is_given = true;
  std::string reason = kByTaint;
  SUBCASE("by a taint of its driver that the policy names") { publish(stage, {device({no_execute("79")})}); }
  SUBCASE("by one that it does not name") {
    publish(stage, {device({no_execute("43")})});
    is_given = false;
  }
  SUBCASE("which is reported") { stage.report("train-0", Health::Unhealthy, "Xid 79"); }
  SUBCASE("which is reported, in words that the policy does not name") {
    stage.report("train-0", Health::Unhealthy, "too hot");
    is_given = false;
  }
  SUBCASE("by an operator's rule, of a device that nobody calls bad") { is_given = false; }
  SUBCASE("and not if it is a drain that takes it from there") {
    publish(stage, {device({no_execute("79")})});
    reason = kEvictedByApi;
    is_given = false;
  }
  stage.run_for(Seconds(2));
  disrupt(stage, "train-0", reason);
  CHECK(stage.job().backoff_limit == (is_given ? 4 : 3));
  CHECK(stage.states() == (is_given ? "spent" : ""));
  CHECK((stage.verdict("train", Reason::DiedOfDevice) != nullptr) == is_given);
  // Nor by the next process.
  stage.restart();
  stage.run_for(minutes(2), Seconds(10));
  CHECK(stage.job().backoff_limit == (is_given ? 4 : 3));
}

TEST_CASE("What a NoExecute takes from a Job is given back up to maxPerJob, once, and not by a podFailurePolicy too") {
  auto stage = silent_device();
  SUBCASE("maxPerJob") {
    stage.policy().job_retry->max_per_job = 0;
    stage.send_policy();
  }
  SUBCASE("podFailurePolicy") {
    k8s::JobFailureRule rule;
    rule.action = k8s::JobFailureRule::Action::Ignore;
    rule.on_pod_conditions = {{.type = "DisruptionTarget"}};
    stage.job().failure_rules = {rule};
    stage.upsert_job("train");
  }
  SUBCASE("a Job that asks for no credit") {
    stage.policy().job_retry->credit = false;
    stage.send_policy();
  }
  stage.report("train-0", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(2));
  disrupt(stage, "train-0", kByTaint);
  CHECK(stage.job().backoff_limit == 3);
}

TEST_CASE("A Job that fails as a NoExecute takes its pod has died of the device, however long the pod takes to end") {
  auto stage = silent_device();
  stage.report("train-0", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(2));
  auto& pod = stage.pod_named("train-0");
  pod.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = kByTaint});
  pod.meta.deletion = stage.now().wall + Seconds(120);
  pod.meta.deletion_grace_seconds = 120;
  stage.upsert_pod("train-0");
  bool is_by_it = true;
  SUBCASE("at once") {}
  SUBCASE("not where it had failed long before") {
    stage.run_for(Seconds(1));
    is_by_it = false;
  }
  stage.job().conditions.push_back({.type = "FailureTarget",
                                    .status = "True",
                                    .reason = "BackoffLimitExceeded",
                                    .last_transition = stage.now().wall - (is_by_it ? Seconds(0) : Seconds(100))});
  stage.upsert_job("train");
  stage.run_for(Seconds(120));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(2));
  CHECK((stage.verdict("train", Reason::JobDiedOfDevice) != nullptr) == is_by_it);
}

TEST_CASE("A pod that is deleted for a device of no plugin has not died of its plugin's device") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  disrupt(stage, "train-0", kByTaint);
  CHECK(stage.job().backoff_limit == 3);
  CHECK(stage.verdict("train", Reason::DiedOfDevice) == nullptr);
}

TEST_CASE(
    "A pod that a NoExecute took, and that is still there, gets its Job what it would have got with a controller") {
  auto stage = silent_device();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.report("train-0", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(20));
  auto& pod = stage.pod_named("train-0");
  pod.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = kByTaint});
  pod.meta.deletion = stage.now().wall;
  stage.end_pod("train-0", PodPhase::Failed);
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.job().backoff_limit == 4);
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
