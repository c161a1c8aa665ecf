#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Two pods of one ReplicaSet on two plugin devices of one node with a free third one; the first device is Unhealthy
/// from now on.
Stage two_pods() {
  Stage stage;
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.pod({.name = "web-2", .device = "gpu-1"});
  stage.run_for(minutes(5));
  stage.report("web-1", Health::Unhealthy);
  stage.node("node-a", 4, 3);
  stage.settle();
  return stage;
}

}  // namespace

TEST_CASE("Nothing is done one millisecond before the window has passed, and everything at it") {
  auto stage = two_pods();
  stage.advance(Seconds(60) - Millis(1));
  CHECK(stage.settle().empty());
  CHECK(stage.reasons("web-1") == "WaitingForWindow");
  CHECK(stage.conditions().empty());
  CHECK(stage.events().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"web-1"});
  CHECK(stage.reasons("web-1") == "Evicted");
  CHECK(stage.reasons("web-2").empty());
}

TEST_CASE("The condition says which device, since when, which policy, and is seen before the eviction is sent") {
  auto stage = two_pods();
  stage.advance(Seconds(60));
  const auto first = stage.turn();
  CHECK(evicted(first).empty());
  CHECK(stage.reasons("web-1") == "WaitingForCondition");
  REQUIRE(stage.conditions().size() == 1);
  const auto& wanted = stage.conditions().front().wanted;
  REQUIRE(wanted.has_value());
  CHECK(wanted->status);
  CHECK(wanted->reason == "DeviceUnhealthy");
  CHECK(wanted->message ==
        "node-a/example.com/gpu/gpu-0 unhealthy since 2026-11-20T12:05:00Z (policy p); next: eviction, due at "
        "2026-11-20T12:06:00Z");
  CHECK(stage.has_event("web-1", "DeviceUnhealthy"));
}

TEST_CASE("A plan from nothing is the plan that follows, and changes nothing itself") {
  auto stage = two_pods();
  stage.advance(Seconds(60));
  const auto said = stage.controller().verdicts();
  const auto foretold = stage.controller().plan_from_nothing(stage.now());
  CHECK(stage.controller().plan_from_nothing(stage.now()).turn.actions == foretold.turn.actions);
  CHECK(stage.controller().verdicts() == said);
  const auto turn = stage.controller().plan(stage.now());
  REQUIRE(!turn.actions.empty());
  CHECK(turn.actions == foretold.turn.actions);
  CHECK(turn.wake_at == foretold.turn.wake_at);
  CHECK(turn.recalls == foretold.turn.recalls);
  CHECK(stage.controller().verdicts() == foretold.verdicts);
  CHECK(foretold.verdicts != said);
}

TEST_CASE("The wake-up time of a waiting plan is exactly when the plan changes") {
  auto stage = two_pods();
  std::vector<Message> none;
  const auto turn = stage.controller().turn(none, stage.now());
  CHECK(turn.wake_at == stage.now().mono + Seconds(60));
}

TEST_CASE("An observing policy writes no condition and evicts nothing, and says that it would") {
  auto stage = two_pods();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  CHECK(stage.run_for(minutes(10)).empty());
  CHECK(stage.conditions().empty());
  CHECK(stage.reasons("web-1") == "WouldEvict");
  CHECK(stage.verdict("web-1", Reason::WouldEvict)->message == "policy p has mode: observe");
  CHECK(stage.has_event("web-1", "WouldEvict"));
}

TEST_CASE("The controller's own mode caps an enforcing policy") {
  auto stage = two_pods();
  stage.whole_policy().mode_cap = Mode::Observe;
  stage.send_policy();
  CHECK(stage.run_for(minutes(10)).empty());
  CHECK(stage.conditions().empty());
  CHECK(stage.verdict("web-1", Reason::WouldEvict)->message == "the controller runs with --mode observe");
}

TEST_CASE("Nothing is planned before every kind has had its first list") {
  Stage stage;
  Controller controller;
  std::vector<Message> messages;
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(stage.whole_policy())});
  messages.emplace_back(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::Pod, .objects = {}}));
  CHECK(controller.turn(messages, stage.now()).actions.empty());
  CHECK(!controller.synced());
}

TEST_CASE("Recovery before the window has passed leaves no trace") {
  auto stage = two_pods();
  stage.run_for(Seconds(59));
  stage.report("web-1", Health::Healthy);
  stage.node("node-a", 4);
  CHECK(stage.run_for(minutes(10)).empty());
  CHECK(stage.conditions().empty());
  CHECK(stage.events().empty());
  CHECK(stage.verdicts().empty());
}

TEST_CASE("Recovery after the incident opened turns the condition False and says so once") {
  auto stage = two_pods();
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 1);
  stage.report("web-1", Health::Healthy);
  stage.node("node-a", 4);
  CHECK(stage.run_for(minutes(10)).empty());
  REQUIRE(stage.conditions().size() == 2);
  CHECK(!stage.conditions().back().wanted->status);
  CHECK(stage.conditions().back().wanted->reason == "Recovered");
  CHECK(stage.has_event("web-1", "Recovered"));
  CHECK(stage.verdicts().empty());
}

TEST_CASE("A device that flaps twice a second is never evicted before the window passed without interruption") {
  auto stage = two_pods();
  for (int i = 0; i < 400; ++i) {
    stage.report("web-1", i % 2 == 0 ? Health::Healthy : Health::Unhealthy);
    CHECK(stage.settle().empty());
    stage.advance(Millis(500));
  }
  stage.report("web-1", Health::Unhealthy);
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"web-1"});
}

TEST_CASE("Unhealthy, Unknown, Unhealthy is one incident, and nothing is done while Unknown") {
  auto stage = two_pods();
  stage.run_for(Seconds(30));
  stage.report("web-1", Health::Unknown);
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.reasons("web-1") == "WaitingWhileUnknown");
  stage.report("web-1", Health::Unhealthy);
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("A pod in a terminal phase is no evidence, whatever its field says") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "done", .device = "gpu-0", .health = Health::Unhealthy, .phase = k8s::PodPhase::Failed});
  CHECK(stage.run_for(minutes(10)).empty());
  CHECK(stage.verdicts().empty());
}

TEST_CASE("After a restart the window does not begin anew, because our condition remembers since when") {
  auto stage = two_pods();
  stage.policy().evict->after = minutes(2);
  stage.send_policy();
  stage.run_for(Seconds(90));
  stage.restart();
  CHECK(stage.run_for(Seconds(89)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"web-1"});
}

TEST_CASE("A condition of an earlier incident is no memory of the present one") {
  auto stage = two_pods();
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  stage.run_for(minutes(4));
  // Healthy and Unhealthy again before our False can be written or seen.
  stage.report("web-1", Health::Healthy);
  stage.turn();
  stage.advance(kHealthySettle);
  stage.turn();
  stage.report("web-1", Health::Unhealthy);
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.run_for(minutes(1)) == Names{"web-1"});
}

TEST_CASE("An eviction that was accepted is sent only once, also after a restart") {
  auto stage = two_pods();
  CHECK(stage.run_for(minutes(1)) == Names{"web-1"});
  CHECK(stage.run_for(minutes(1)).empty());
  stage.restart();
  CHECK(stage.run_for(Seconds(89)).empty());
  CHECK(stage.reasons("web-1") == "Evicted");
  CHECK(stage.run_for(Seconds(1)).empty());
  CHECK(stage.reasons("web-1") == "StuckTerminating");
}

TEST_CASE("A policy without evict only shows the incident") {
  auto stage = two_pods();
  stage.policy().evict.reset();
  stage.send_policy();
  CHECK(stage.run_for(minutes(10)).empty());
  CHECK(stage.reasons("web-1") == "NoEvictionConfigured");
  CHECK(stage.conditions().size() == 1);
}

TEST_CASE("When nothing changes nothing is written") {
  auto stage = two_pods();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(2));
  const auto events = stage.events().size();
  const auto conditions = stage.conditions().size();
  stage.run_for(minutes(10));
  CHECK(stage.events().size() == events);
  CHECK(stage.conditions().size() == conditions);
}

}  // namespace dhc::test
