// A device of which its driver says by a taint what its kubelet says by a report, or does not.
#include <doctest/doctest.h>

#include "tests/controller/cluster/driver_taint_stage.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Its driver has run for long, has tainted gpu-0, and the incident is open.
Stage tainted_device(std::vector<Health> asked) {
  auto stage = held_device();
  stage.policy().match.health = std::move(asked);
  stage.policy().match.device_taints.front().effect = "*";
  stage.policy().evict.reset();
  stage.policy().taint = TaintRules{};
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  publish_taints(stage, {.first = {xid("79", "None")}});
  stage.run_for(minutes(2));
  REQUIRE(stage.rule() != nullptr);
  return stage;
}

}  // namespace

TEST_CASE("A report that joins a driver's taint does not begin the wait anew") {
  auto stage = held_device();
  publish_taints(stage, {.first = {xid("79", "NoSchedule")}});
  stage.run_for(Seconds(50));
  stage.report("train-1", Health::Unhealthy);
  CHECK(stage.run_for(Seconds(9)).empty());
  CHECK(stage.run_for(Seconds(1)) == std::vector<std::string>{"train-1"});
}

TEST_CASE("A report that no policy asks for does not hold an incident open whose taint its driver has taken back") {
  auto stage = tainted_device({});
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(Seconds(30));
  publish_taints(stage, {});
  stage.run_for(Seconds(31));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("A taint that is withdrawn is not believed of a driver whose start within the next 30 s is told late") {
  for (const auto told_after : {Seconds(22), Seconds(29)}) {
    auto stage = tainted_device({});
    publish_taints(stage, {});
    stage.run_for(told_after);
    put_driver(stage, stage.now().wall - Seconds(9));
    stage.run_for(minutes(15), Seconds(10));
    CHECK(stage.rule() != nullptr);
    CHECK(count_of_conditions(stage, false) == 0);
  }
}

TEST_CASE("What the kubelet says for a moment in a taint's incident is believed when it says Healthy again") {
  auto stage = tainted_device({Health::Unhealthy});
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(Seconds(20));
  stage.report("train-1", Health::Healthy);
  SUBCASE("the driver has run all along") {
    stage.run_for(Seconds(20));
    publish_taints(stage, {});
    stage.run_for(minutes(11), Seconds(10));
    CHECK(stage.rule() == nullptr);
    CHECK(stage.reasons("train-1").empty());
  }
  SUBCASE("it has begun anew, and knows of neither") {
    publish_taints(stage, {});
    put_driver(stage, stage.now().wall);
    stage.run_for(hours(1), Seconds(10));
    CHECK(stage.rule() != nullptr);
    CHECK(count_of_conditions(stage, false) == 0);
  }
}

}  // namespace dhc::test
