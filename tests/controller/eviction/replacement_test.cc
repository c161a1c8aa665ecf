#include <optional>
#include <variant>

#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE("A plugin pod waits until the node's allocatable shows the loss, at most a minute") {
  Stage stage;
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(Seconds(119)).empty());
  CHECK(stage.reasons("web-1") == "WaitingForAllocatable");
  SUBCASE("it falls") {
    stage.node("node-a", 4, 3);
    CHECK(stage.settle() == Names{"web-1"});
  }
  SUBCASE("it never falls") {
    stage.advance(Seconds(1));
    CHECK(stage.settle() == Names{"web-1"});
  }
}

TEST_CASE("Allocatable must show every Unhealthy device of the node, not only one") {
  Stage stage;
  stage.limits().brake_at_least = 100;
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1", .health = Health::Unhealthy});
  CHECK(stage.run_for(Seconds(70)).empty());
  CHECK(stage.reasons("web-1") == "WaitingForAllocatable");
  stage.node("node-a", 4, 2);
  CHECK(stage.settle() == Names{"web-1", "web-2"});
}

TEST_CASE("A controller that lost a pod to a device within the hour is not robbed again for the same device") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.remove_pod("web-1");
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(50), Seconds(10)).empty());
  CHECK(stage.reasons("web-2") == "ReplacementOnSameDevice");
  CHECK(stage.has_event("web", "ReplacementOnSameDevice"));
  CHECK(stage.run_for(minutes(20), Seconds(10)) == Names{"web-2"});
}

TEST_CASE(
    "A second eviction from the same device does not make the first one's replacement a pod that was there before") {
  Stage stage;
  stage.policy().evict->after = Seconds(0);
  stage.limits().max_in_flight = 1;
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.remove_pod("web-1");
  stage.pod({.name = "web-3", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(2)) == Names{"web-2"});
  stage.remove_pod("web-2");
  CHECK(stage.run_for(minutes(30), Seconds(10)).empty());
  CHECK(stage.reasons("web-3") == "ReplacementOnSameDevice");
}

TEST_CASE("The next process knows it too, by the state, and who held the device besides") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = Seconds(0);
  stage.limits().max_in_flight = 1;
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});  // such as a time-sliced device
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.run_for(Seconds(10));
  stage.remove_pod("web-1");
  stage.pod({.name = "web-3", .device = "gpu-0", .health = Health::Unhealthy});
  stage.restart();
  CHECK(stage.run_for(minutes(5)) == Names{"web-2"});
  stage.remove_pod("web-2");
  for (int i = 0; i < 4; ++i) {
    stage.restart();
    CHECK(stage.run_for(minutes(12), Seconds(10)).empty());
    CHECK(stage.reasons("web-3") == "ReplacementOnSameDevice");
  }
  CHECK(stage.run_for(minutes(20), Seconds(10)) == Names{"web-3"});
}

TEST_CASE("Another replica of the card is the same device, in any process, and who was on it then is no replacement") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Stage stage;
    stage.whole_policy().own_namespace = "dhc";
    stage.policy().evict->after = Seconds(0);
    stage.limits().max_in_flight = 1;
    stage.send_policy();
    stage.node("node-a", 4, 2);
    stage.pod({.name = "web-1", .device = "GPU-x::0", .health = Health::Unhealthy});
    stage.pod({.name = "web-2", .device = "GPU-x::1", .health = Health::Unhealthy});
    CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
    stage.run_for(Seconds(10));
    stage.remove_pod("web-1");
    if (restarts) stage.restart();
    CHECK(stage.run_for(minutes(5)) == Names{"web-2"});
    stage.run_for(Seconds(10));
    stage.remove_pod("web-2");
    stage.pod({.name = "web-3", .device = "GPU-x::2", .health = Health::Unhealthy});
    stage.pod({.name = "other", .device = "GPU-y::0"});
    if (restarts) stage.restart();
    CHECK(stage.run_for(minutes(40), Seconds(10)).empty());
    CHECK(stage.reasons("web-3") == "ReplacementOnSameDevice");
    CHECK(stage.run_for(minutes(30), Seconds(10)) == Names{"web-3"});
  }
}

TEST_CASE("Another card of the same node is another device") {
  Stage stage;
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 4, 2);
  stage.pod({.name = "web-1", .device = "GPU-x::0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.remove_pod("web-1");
  stage.pod({.name = "web-2", .device = "GPU-y::0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(5)) == Names{"web-2"});
}

TEST_CASE("What an earlier version wrote down of one replica is known of the others too") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 4, 2);
  stage.pod({.name = "web-1", .device = "GPU-x::0", .health = Health::Unhealthy});
  REQUIRE(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.run_for(Seconds(10));
  REQUIRE(stage.state_text().contains(R"("device":"GPU-x::0")"));
  stage.remove_pod("web-1");
  stage.pod({.name = "web-2", .device = "GPU-x::1", .health = Health::Unhealthy});
  stage.restart();
  CHECK(stage.run_for(minutes(30), Seconds(10)).empty());
  CHECK(stage.reasons("web-2") == "ReplacementOnSameDevice");
}

TEST_CASE("What an earlier version wrote down by the owner's UID alone is known too") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  REQUIRE(stage.run_for(minutes(2)) == Names{"web-1"});
  stage.run_for(Seconds(10));
  auto text = stage.state_text();
  const std::string key = "\"owner\":\"default/";
  const auto at = text.find(key);
  REQUIRE(at != std::string::npos);
  text.erase(at + key.size() - std::string("default/").size(), std::string("default/").size());
  stage.put(state_map(text));
  stage.remove_pod("web-1");
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});
  stage.restart();
  CHECK(stage.run_for(minutes(30), Seconds(10)).empty());
  CHECK(stage.reasons("web-2") == "ReplacementOnSameDevice");
}

TEST_CASE("An eviction whose answer is lost counts, also when its pod is gone before the time is over") {
  Stage stage;
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  std::optional<Action> lost;
  for (int i = 0; i < 120 && !lost; ++i) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<eviction::EvictPod>(action)) {
        lost = action;
      } else {
        stage.answer(action);
      }
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(lost);
  auto& pod = stage.pod_named("web-1");
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = "EvictionByEvictionAPI"});
  stage.upsert_pod("web-1");
  stage.turn();
  stage.advance(Seconds(30));
  stage.remove_pod("web-1");
  stage.turn();
  stage.answer(*lost, fail(ErrorKind::TimedOut, "no answer within 35 s"));
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(50), Seconds(10)).empty());
  CHECK(stage.reasons("web-2") == "ReplacementOnSameDevice");
}

TEST_CASE("When no place is known and the policy does not wait for one, the verdict says so and the eviction goes on") {
  Stage stage;
  stage.policy().evict->no_replacement_wait = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 2, 1);
  stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1"});
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  bool said = false;
  Names gone;
  for (int i = 0; i < 6 && gone.empty(); ++i) {
    const auto actions = stage.turn();
    said = said || stage.verdict("web-1", Reason::NoReplacementDevice) != nullptr;
    gone = evicted(actions);
    for (const auto& action : actions) stage.answer(action);
    stage.advance(Seconds(10));
  }
  CHECK(said);
  CHECK(gone == Names{"web-1"});
}

TEST_CASE(
    "Between the server's answer and the pod's deletionTimestamp the evicted pod is not taken for its own "
    "replacement") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.run_for(Seconds(59));
  stage.advance(Seconds(31));  // also past the patience for the condition, which nobody shows here
  const auto actions = stage.turn();
  for (const auto& action : actions) stage.answer(action);
  stage.advance(Seconds(60));
  const auto later = stage.turn();
  for (const auto& action : later) stage.answer(action);
  stage.turn();
  CHECK(stage.reasons("web-1") == "Evicted");
  CHECK(!stage.has_event("web", "ReplacementOnSameDevice"));
}

}  // namespace dhc::test
