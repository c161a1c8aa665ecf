// Who has never said anything about its devices: `ReporterNeverSpoke`.
#include <doctest/doctest.h>

#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

TEST_CASE("A driver that never speaks is told once, after a grace, until it speaks") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  hold_device(stage);
  const auto is_said = [&] { return stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke) != nullptr; };
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(!is_said());
  stage.run_for(Seconds(1));
  REQUIRE(is_said());
  CHECK(stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke)->subject.kind == "Driver");
  SUBCASE("by the kubelet") {
    stage.report("train-1", Health::Healthy);
    stage.turn();
    CHECK(!is_said());
    stage.report("train-1", Health::Unknown);
    stage.run_for(minutes(20), Seconds(10));
    CHECK(!is_said());
  }
  SUBCASE("by a taint, of any device") {
    publish_taints(stage, {.first = {}, .second = {xid("43", "None")}});
    stage.turn();
    CHECK(!is_said());
  }
  SUBCASE("nobody holds its devices any more") {
    stage.remove_pod("train-1");
    stage.turn();
    CHECK(!is_said());
  }
  SUBCASE("a policy takes it out") {
    stage.policy().mode = Mode::Off;
    stage.send_policy();
    stage.turn();
    CHECK(!is_said());
  }
}

TEST_CASE("Where no pod's status speaks of devices the feature gate is suspected") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  hold_device(stage);
  stage.pod_named("train-1").allocated.clear();
  stage.upsert_pod("train-1");
  stage.run_for(minutes(10) + Seconds(1), Seconds(1));
  const auto* verdict = stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->message.contains("ResourceHealthStatus"));
}

TEST_CASE("A pod whose object changes all the time holds its devices without a break") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  hold_device(stage);
  for (int second = 0; second <= 600; second += 10) {
    stage.upsert_pod("train-1");
    stage.run_for(Seconds(10), Seconds(10));
  }
  CHECK(stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke) != nullptr);
}

TEST_CASE("Where a policy names a silent driver's taints it is told what else to do") {
  auto stage = held_device();
  stage.run_for(minutes(10) + Seconds(1), Seconds(1));
  const auto* verdict = stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke);
  REQUIRE(verdict != nullptr);
  CHECK_FALSE(verdict->message.contains("name its taints"));
  CHECK(verdict->message.contains("health monitoring"));
}

TEST_CASE("A device plugin of which no pod's status speaks is told where a policy names its resource") {
  Stage stage;
  const bool is_named = [&] {
    bool named = false;
    SUBCASE("named") { named = true; }
    SUBCASE("not named") {}
    return named;
  }();
  stage.policy().match.resources = {is_named ? std::string(kGpu) : "other.example.com/*"};
  stage.send_policy();
  stage.node("node-a", 4);
  stage.pod({.name = "train-1", .device = "gpu-0"});
  auto& pod = stage.pod_named("train-1");
  pod.allocated.clear();
  pod.requests = {{.resource = std::string(kGpu), .amount = 1}};
  stage.upsert_pod("train-1");
  const auto said = [&] { return stage.verdict(std::string(kGpu), Reason::ReporterNeverSpoke); };
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(said() == nullptr);
  stage.run_for(Seconds(2));
  CHECK((said() != nullptr) == is_named);
  if (!is_named) return;
  CHECK(said()->message.contains("ResourceHealthStatus"));
  stage.pod({.name = "train-1", .device = "gpu-0"});
  stage.run_for(Seconds(2));
  CHECK(said() == nullptr);
}

}  // namespace dhc::test
