#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// A device that is a lemon with its second penalty; it is tainted and free.
Stage lemon_soon() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover = {.hold = hours(1), .half_life = hours(720), .quarantine_above = 1.5};
  stage.send_policy();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.settle();
  return stage;
}

void hold_out(Stage& stage) {
  for (int hour = 0; hour < 200 && stage.rule() != nullptr; ++hour) stage.run_for(hours(1), minutes(10));
  REQUIRE(stage.rule() == nullptr);
}

void take_device(Stage& stage, const std::string& pod, Health health) {
  stage.claim(pod + "-gpu", {"gpu-0"}, pod);
  stage.pod({.name = pod, .owner = "Job/" + pod, .health = health, .claim = pod + "-gpu"});
  stage.settle();
}

void break_under(Stage& stage, const std::string& pod) {
  stage.report(pod, Health::Unhealthy, "Xid 79");
  stage.settle();
  REQUIRE(stage.rule() != nullptr);
}

DeviceHistory past_of(const Stage& stage) {
  const auto content = parse_state(stage.state_text());
  REQUIRE(content.records.size() == 1);
  return content.records.front().past;
}

bool is_lemon(const Stage& stage) { return stage.verdict("node-a", Reason::Quarantined) != nullptr; }

}  // namespace

TEST_CASE("What is still bad when its hold runs out has not broken again: held longer each time, and no lemon") {
  auto stage = lemon_soon();
  bool restarts = false;
  SUBCASE("") {}
  SUBCASE("each time by another process") { restarts = true; }
  for (const std::string pod : {"train-2", "train-3", "train-4", "train-5"}) {
    hold_out(stage);
    if (restarts) stage.restart();
    take_device(stage, pod, Health::Healthy);
    stage.run_for(minutes(9), Seconds(30));
    break_under(stage, pod);
    CHECK_FALSE(is_lemon(stage));
    stage.run_for(Seconds(61));
    drop_pod(stage, pod, pod + "-gpu");
    stage.settle();
  }
  const auto past = past_of(stage);
  CHECK(past.count == 5);
  CHECK(past.penalty == 1);
  CHECK(hold_of(past, stage.policy().recover) == hours(16));
}

TEST_CASE("A device on which a pod has worked for healthyFor since its hold ran out breaks anew, to the millisecond") {
  for (const auto health : {Health::Healthy, Health::Unknown}) {
    for (const auto worked : {minutes(10) - Millis(1), Millis(minutes(10))}) {
      auto stage = lemon_soon();
      hold_out(stage);
      take_device(stage, "train-2", health);
      stage.advance(worked);
      stage.settle();
      break_under(stage, "train-2");
      CAPTURE(worked.count());
      CAPTURE(static_cast<int>(health));
      CHECK(is_lemon(stage) == (worked == minutes(10)));
    }
  }
}

TEST_CASE("Pods that have the device for less than healthyFor each, or with a bad word between, prove nothing") {
  auto stage = lemon_soon();
  hold_out(stage);
  for (int i = 0; i < 3; ++i) {
    take_device(stage, "short-" + std::to_string(i), Health::Healthy);
    stage.run_for(minutes(6), Seconds(30));
    drop_pod(stage, "short-" + std::to_string(i), "short-" + std::to_string(i) + "-gpu");
    stage.settle();
  }
  take_device(stage, "train-2", Health::Healthy);
  break_under(stage, "train-2");
  CHECK_FALSE(is_lemon(stage));
}

TEST_CASE(
    "That a pod has worked on it is known to the process after this one, and how long one has been at it is not") {
  for (const bool is_proven : {true, false}) {
    auto stage = lemon_soon();
    hold_out(stage);
    take_device(stage, "train-2", Health::Healthy);
    stage.run_for(is_proven ? minutes(11) : minutes(9), Seconds(30));
    stage.restart();
    stage.run_for(minutes(5), Seconds(30));
    break_under(stage, "train-2");
    CAPTURE(is_proven);
    CHECK(is_lemon(stage) == is_proven);
  }
}

TEST_CASE("A device that is bad again after a reboot has broken again: that was tried as a repair") {
  auto stage = lemon_soon();
  const auto boot = [&](const std::string& id) {
    auto node = stage.node_named("node-a");
    node.boot_id = id;
    stage.put(node);
    stage.settle();
  };
  boot("boot-1");
  boot("boot-2");
  stage.run_for(minutes(11), Seconds(30));
  REQUIRE(stage.rule() == nullptr);
  take_device(stage, "train-2", Health::Unknown);
  break_under(stage, "train-2");
  CHECK(is_lemon(stage));
}

TEST_CASE("After probation every incident is a new break") {
  auto stage = lemon_soon();
  hold_out(stage);
  stage.run_for(hours(24), minutes(10));
  take_device(stage, "train-2", Health::Unhealthy);
  stage.run_for(Seconds(61));
  CHECK(is_lemon(stage));
}

TEST_CASE("A device that called itself Healthy while it was held breaks anew") {
  auto stage = gpu_stage();
  stage.policy().recover = {.hold = hours(1), .half_life = hours(720), .quarantine_above = 1.5};
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(5), Seconds(30));
  drop_pod(stage, "train-1", "train-gpu");
  hold_out(stage);
  take_device(stage, "train-2", Health::Unknown);
  break_under(stage, "train-2");
  CHECK(is_lemon(stage));
}

}  // namespace dhc::test
