#include <algorithm>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A plugin device and a DRA device break, one recovers late, one driver is away for a while; the controller starts
/// anew at `restart_at`. Gives every eviction in order of name, and the conditions that the pods carry in the end.
std::vector<std::string> story(Millis restart_at) {
  Stage stage;
  stage.policy().evict->after = Seconds(10);
  stage.policy().after = Seconds(20);
  stage.limits().brake_at_least = 100;
  stage.send_policy();
  stage.node("node-a", 8);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.pod({.name = "web-2", .device = "gpu-1"});
  stage.slice("node-a", {"gpu-0", "gpu-1", "gpu-2"}, {"gpu-0"});
  stage.claim("c", {"gpu-0"}, "train-1");
  stage.pod({.name = "train-1", .owner = "Job/t", .claim = "c"});
  Names gone;
  for (Millis at{0}; at < minutes(4); at += Seconds(1)) {
    if (at == Seconds(5)) stage.report("web-1", Health::Unhealthy);
    if (at == Seconds(6)) stage.node("node-a", 8, 7);
    if (at == Seconds(8)) stage.report("train-1", Health::Unhealthy, "Xid 79");
    if (at == Seconds(30)) stage.report("train-1", Health::Unknown);
    if (at == Seconds(50)) stage.report("train-1", Health::Unhealthy, "Xid 79");
    if (at == Seconds(60)) stage.report("web-2", Health::Unhealthy);
    if (at == Seconds(70)) stage.report("web-2", Health::Healthy);
    if (at == restart_at) stage.restart();
    for (auto& name : stage.settle()) gone.push_back(std::move(name));
    stage.advance(Seconds(1));
  }
  std::ranges::sort(gone);
  for (const char* name : {"train-1", "web-1", "web-2"}) {
    for (const auto& condition : stage.pod_named(name).conditions)
      gone.push_back(fmt::format("{} {}={}", name, condition.type, condition.status));
  }
  return gone;
}

}  // namespace

TEST_CASE("A restart at every second of a story gives the same end state, and nobody is evicted twice") {
  const auto expected = story(Millis(-1));
  REQUIRE(expected == Names{"train-1", "web-1", "train-1 device-health.io/DeviceUnhealthy=True",
                            "train-1 DisruptionTarget=True", "web-1 device-health.io/DeviceUnhealthy=True",
                            "web-1 DisruptionTarget=True"});
  for (Millis at{0}; at < minutes(2); at += Seconds(1)) {
    CAPTURE(at.count());
    CHECK(story(at) == expected);
  }
}

TEST_CASE("A restart between sending an eviction and its answer sends no second one once the pod shows it") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  Names sent;
  for (int i = 0; i < 5 && sent.empty(); ++i) {
    const auto actions = stage.turn();
    sent = evicted(actions);
    for (const auto& action : actions) {
      stage.answer(action);
      if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
        stage.pod_named("web-1").conditions = {{"device-health.io/DeviceUnhealthy", "True", "DeviceUnhealthy",
                                                condition->wanted->message, condition->wanted->last_transition}};
        stage.upsert_pod("web-1");
      }
    }
  }
  REQUIRE(sent == Names{"web-1"});
  auto& pod = stage.pod_named("web-1");
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "", stage.now().wall});
  stage.upsert_pod("web-1");
  stage.restart();
  CHECK(stage.run_for(minutes(1)).empty());
  CHECK(stage.reasons("web-1") == "Evicted");
}

namespace {

/// web-1 waits for its node to show the loss, which it never does.
void wait_for_a_blind_node(Stage& stage) {
  stage.node("node-a", 8);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.settle();
  stage.report("web-1", Health::Unhealthy);
  stage.run_for(minutes(1) + Seconds(20));
  REQUIRE(stage.verdict("web-1", Reason::WaitingForAllocatable) != nullptr);
}

}  // namespace

TEST_CASE("The wait for a node that never shows the loss ends though no process lives as long as the wait") {
  Stage stage;
  wait_for_a_blind_node(stage);
  Names gone;
  for (int i = 0; i < 6 && gone.empty(); ++i) {
    stage.restart();
    gone = stage.run_for(Seconds(10));
  }
  CHECK(gone == Names{"web-1"});
}

TEST_CASE("A condition whose time is ahead of the clock makes the wait for its node no longer than a process's own") {
  Stage stage;
  wait_for_a_blind_node(stage);
  stage.pod_named("web-1").conditions.change_if(
      [](const auto&) { return true; },
      [&](k8s::Condition& one) { one.last_transition = stage.now().wall + std::chrono::hours(24); });
  stage.upsert_pod("web-1");
  stage.restart();
  CHECK(stage.run_for(minutes(1) - Seconds(1)).empty());
  CHECK(stage.run_for(Seconds(2)) == Names{"web-1"});
}

}  // namespace dhc::test
