// A wall clock that is wrong ends nothing that is measured in hours.
#include <string>

#include <doctest/doctest.h>

#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Tainted and evicted, the pod gone: held for a day.
Stage held_for_a_day() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover.hold = hours(24);
  stage.limits().cap_per_day = {.percent = 0, .at_least = 1};
  stage.hold_caps();
  stage.send_policy();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(5), Seconds(10));
  return stage;
}

/// The day's eviction is used up, and what is held stays so.
void check_held(Stage& stage) {
  CHECK(stage.rule() != nullptr);
  stage.claim("train-2-gpu", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train-2", .health = Health::Unhealthy, .claim = "train-2-gpu"});
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.verdict("train-2", Reason::CapReached) != nullptr);
}

}  // namespace

TEST_CASE("A clock that is a day ahead, or behind, for a moment ends no hold and empties no cap") {
  for (const auto by : {hours(25), -hours(25)}) {
    CAPTURE(by.count());
    auto stage = held_for_a_day();
    stage.set_clock(by);
    stage.run_for(Seconds(30), Seconds(10));
    stage.set_clock(Millis(0));
    stage.run_for(minutes(2), Seconds(10));
    check_held(stage);
  }
}

TEST_CASE("A clock that is set a day ahead, which the API server contradicts, ends no hold") {
  auto stage = held_for_a_day();
  stage.set_clock(hours(25));
  stage.run_for(Seconds(10), Seconds(10));
  stage.deliver(ServerClockSeen{.ahead = -hours(25)});
  stage.run_for(hours(3), minutes(10));
  check_held(stage);
}

TEST_CASE("The next leader, on a node whose clock is a day ahead, ends no hold and empties no cap") {
  auto stage = held_for_a_day();
  stage.set_clock(hours(25));
  stage.restart();
  stage.deliver(ServerClockSeen{.ahead = -hours(25)});
  stage.run_for(hours(3), minutes(10));
  check_held(stage);
}

TEST_CASE("A hold is over on a machine that has slept, a minute after it woke") {
  auto stage = held_for_a_day();
  stage.set_clock(hours(25));
  stage.run_for(Seconds(10), Seconds(10));
  stage.deliver(ServerClockSeen{.ahead = Millis(0)});
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.rule() == nullptr);
}

}  // namespace dhc::test
