// Of several gates that hold a pod the first one speaks: docs/verdicts.md shows their order.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "domain/cluster/views.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;

namespace {

/// The gate that holds the pod; empty: none does.
std::string gate_of(const Stage& stage, const std::string& pod) {
  const auto& all = stage.verdicts();
  const auto held = std::ranges::find_if(
      all, [&](const Verdict& verdict) { return verdict.subject.name == pod && !verdict.gate.empty(); });
  return held == all.end() ? std::string() : std::string(held->gate);
}

}  // namespace

TEST_CASE("A pod that waits for its node to show the loss says so, and not that others of its Job are to follow") {
  JobStage stage;
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.run_for(Seconds(5));
  stage.report("train-1", Health::Unhealthy);
  std::string gate;
  SUBCASE("the node does not show it") {
    stage.node("node-a", 8, 8);
    gate = "allocatable";
  }
  SUBCASE("it does") { gate = "siblings"; }
  CHECK(stage.run_for(Seconds(66)).empty());
  CHECK(gate_of(stage, "train-0") == gate);
}

TEST_CASE("A pod that is paused says so, and not that a watch has been silent for too long") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.settle();
  stage.silence(k8s::Kind::Pod);
  stage.policy().after = kOldestView;
  std::string gate;
  SUBCASE("paused") {
    stage.limits().paused = true;
    gate = "paused";
  }
  SUBCASE("not paused") { gate = "view"; }
  stage.send_policy();
  CHECK(stage.run_for(kOldestView).empty());
  CHECK(gate_of(stage, "a") == gate);
}

}  // namespace dhc::test
