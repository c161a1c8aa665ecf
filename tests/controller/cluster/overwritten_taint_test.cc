// NVIDIA's driver 0.5.0 keeps one taint a key: a harmless word that is written over a fault has not taken it back.
#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/controller/cluster/driver_taint_stage.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

TEST_CASE("An operator's word ends the incident of a fault that a harmless word was written over") {
  auto stage = held_device();
  stage.policy().evict.reset();
  stage.policy().taint = TaintRules{};
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(2));
  REQUIRE(count_of_conditions(stage, true) == 1);
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.run_for(minutes(20), Seconds(10));
  REQUIRE(count_of_conditions(stage, false) == 0);
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{"device-health.io/acknowledge", format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.run_for(minutes(20), Seconds(10));
  CHECK(count_of_conditions(stage, false) == 1);
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("A fault that a harmless word was written over before its incident opened is forgotten after 15 minutes") {
  auto stage = held_device();
  stage.policy().after = minutes(10);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(1));
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.settle();
  REQUIRE(stage.reasons("train-1") == "WaitingWhileUnknown");
  stage.run_for(kLongestUnknown - Millis(1), minutes(1));
  REQUIRE(stage.reasons("train-1") == "WaitingWhileUnknown");
  const auto wake = stage.wake_at();
  REQUIRE(wake);
  CHECK((*wake == stage.now().mono + Millis(1)));
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("A fault that a harmless word was written over is none of the pods that come later") {
  auto stage = held_device();
  stage.policy().evict.reset();
  stage.policy().taint = TaintRules{};
  const bool is_open = [] {
    bool open = false;
    SUBCASE("its incident is open") { open = true; }
    SUBCASE("its incident has ended") {}
    return open;
  }();
  if (!is_open) stage.policy().recover.hold = hours(1);
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(2));
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.run_for(minutes(1));
  stage.remove_pod("train-1");
  stage.run_for(hours(3), Seconds(30));
  const auto told = count_of_conditions(stage, true);
  stage.pod({.name = "train-2", .owner = "Job/t", .health = Health::Unknown, .claim = "c2"});
  stage.claim("c2", {"gpu-0"}, "train-2");
  stage.run_for(minutes(2));
  CHECK(count_of_conditions(stage, true) == told);
  CHECK(stage.reasons("train-2").empty());
}

}  // namespace dhc::test
