// A driver that begins anew before the incident of its device is open: within `after`, while the brake is engaged,
// before the rule is made.
#include <doctest/doctest.h>

#include "domain/world.h"
#include "tests/core/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Its device has just turned Unhealthy; the driver has run since before that.
Stage fresh_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.settle();
  return stage;
}

}  // namespace

TEST_CASE("A driver that begins anew within `after` does not keep its device's incident from opening") {
  for (const bool start_first : {true, false}) {
    CAPTURE(start_first);
    auto stage = fresh_stage();
    const auto onset = stage.now().mono;
    stage.run_for(Seconds(20));
    const auto began = stage.now().wall;
    start_first ? put_driver(stage, began) : stage.report("train-1", Health::Healthy);
    stage.run_for(kHealthySettle - Millis(1), Millis(3333));
    start_first ? stage.report("train-1", Health::Healthy) : put_driver(stage, began);
    stage.settle();
    stage.advance(onset + minutes(1) - stage.now().mono - Millis(1));
    stage.settle();
    CHECK(deeds(stage).empty());
    CHECK(stage.reasons("train-1") == "WaitingForWindow");
    stage.advance(Millis(1));
    stage.settle();
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    stage.run_for(hours(1), minutes(1));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    CHECK(stage.reasons("train-1").find("ReporterRestarted") != std::string::npos);
    CHECK(count_of_conditions(stage, true) == 1);
    CHECK(count_of_conditions(stage, false) == 0);
  }
}

TEST_CASE("What was bad before a long Unknown is not gone on with because its driver began anew meanwhile") {
  for (const bool too_long : {false, true}) {
    CAPTURE(too_long);
    auto stage = fresh_stage();
    stage.run_for(Seconds(1));
    stage.report("train-1", Health::Unknown);
    stage.settle();
    stage.advance(kLongestUnknown - (too_long ? Millis(0) : Millis(1)));
    put_driver(stage, stage.now().wall - Seconds(11));
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(10));
    CHECK(deeds(stage) == (too_long ? "" : "apply NoSchedule gpu-0"));
    CHECK((stage.controller().stats().devices_unknown == 0) == too_long);
  }
}

TEST_CASE("An incident that a restarted driver's Healthy has opened ends with its hold, and opens no other") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(23), minutes(5));
  CHECK(stage.rule() != nullptr);
  stage.run_for(hours(50), minutes(5));
  CHECK(stage.rule() == nullptr);
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, delete gpu-0");
  CHECK(count_of_conditions(stage, false) == 1);
}

TEST_CASE(
    "A driver that takes back within `after` what it has said itself opens no incident, also if it restarts later") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  stage.report("train-1", Health::Healthy);
  stage.run_for(kHealthySettle + Seconds(1));
  put_driver(stage, stage.now().wall);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
  CHECK(count_of_conditions(stage, true) == 0);
}

TEST_CASE("A driver that has called its device bad again within `after` may take that back") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(10));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(10));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(10));
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
}

TEST_CASE("A node that boots within `after` has reset its devices: no incident opens") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  boot(stage, "boot-2");
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
}

TEST_CASE("What was called bad under the brake, and called healthy by a driver that began anew, opens no incident") {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.whole_policy().own_namespace = "dhc";
  stage.limits().brake_at_least = 2;
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", kFourGpus);
  put_driver(stage, stage.now().wall - hours(1));
  for (const auto* name : {"0", "1", "2"}) {
    const auto pod = std::string("train-") + name;
    stage.claim(pod + "-gpu", {std::string("gpu-") + name}, pod);
    stage.pod({.name = pod, .owner = "Job/train", .health = Health::Unhealthy, .claim = pod + "-gpu"});
  }
  stage.run_for(minutes(3));
  REQUIRE(stage.controller().stats().brakes_engaged > 0);
  put_driver(stage, stage.now().wall);
  for (const auto* name : {"train-0", "train-1", "train-2"}) stage.report(name, Health::Healthy);
  stage.run_for(minutes(30), Seconds(10));
  CHECK(stage.controller().stats().brakes_engaged == 0);
  CHECK(stage.controller().stats().devices_healthy == 3);
  CHECK(deeds(stage).empty());
  SUBCASE("bad again after the brake's release: an incident as any other") {
    stage.report("train-1", Health::Unhealthy);
    stage.run_for(minutes(2));
    CHECK(deeds(stage).starts_with("apply NoSchedule gpu-1"));
  }
}

TEST_CASE("A leader opens no incident of what was forgotten while it stood by and another led") {
  for (const auto away : {Seconds(10), Seconds(16 * 60)}) {
    CAPTURE(away.count());
    auto stage = fresh_stage();
    stage.run_for(Seconds(20));
    stage.deliver(Leading{.leads = false});
    put_driver(stage, stage.now().wall);
    stage.report("train-1", Health::Healthy);
    stage.run_for(away, Seconds(5));
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(5));
    CHECK((stage.rule() != nullptr) == (away == Seconds(10)));
  }
}

TEST_CASE("A rule that was not made before its device's driver began anew is made then") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.limits().paused = true;
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.run_for(minutes(2));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(2));
  REQUIRE(stage.rule() == nullptr);
  stage.limits().paused = false;
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(stage.rule() != nullptr);
}

}  // namespace dhc::test
