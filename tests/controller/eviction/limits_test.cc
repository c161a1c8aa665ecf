#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// `count` nodes, on each one bad device held by a pod of a ReplicaSet of its own; nothing brakes.
Stage many(int count, const std::string& owner = {}) {
  Stage stage;
  stage.limits() = {
      .evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100, .brake_at_least = 1000};
  stage.send_policy();
  for (int i = 0; i < count; ++i) {
    const auto node = fmt::format("node-{}", i);
    stage.node(node, 4, 3);
    stage.pod({.name = fmt::format("p-{}", i),
               .node = node,
               .owner = owner.empty() ? fmt::format("ReplicaSet/rs-{}", i) : owner,
               .device = "gpu-0",
               .health = Health::Unhealthy});
  }
  return stage;
}

}  // namespace

TEST_CASE("The token bucket starts empty and gives one eviction each sixtieth of a minute's budget") {
  auto stage = many(3);
  stage.limits().evictions_per_minute = 1;
  stage.policy().after = Seconds(1);
  stage.send_policy();
  stage.settle();
  CHECK(stage.run_for(Seconds(60) - Millis(1), Seconds(1)).empty());
  CHECK(stage.reasons("p-0") == "RateLimited");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-0"});
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"p-1"});
}

TEST_CASE("Who is refused in the turn in which another goes is told when there is a token for it, too") {
  auto stage = many(2);
  stage.limits().evictions_per_minute = 2;
  stage.policy().after = Seconds(30);
  stage.send_policy();
  CHECK(stage.run_for(Seconds(29)).empty());
  stage.advance(Seconds(1));
  Names gone;
  for (int turns = 0; turns < 5 && gone.empty(); ++turns) {
    const auto actions = stage.turn();
    gone = evicted(actions);
    for (const auto& action : actions) {
      stage.answer(action);
      stage.show(action);
    }
  }
  REQUIRE(gone == Names{"p-0"});
  const auto* refused = stage.verdict("p-1", Reason::RateLimited);
  REQUIRE(refused != nullptr);
  CHECK(refused->next_at == stage.now().wall + Seconds(30));
}

TEST_CASE("A restart gives nobody a fresh budget") {
  auto stage = many(3);
  stage.limits().evictions_per_minute = 1;
  stage.send_policy();
  CHECK(stage.run_for(Seconds(61)) == Names{"p-0"});
  stage.restart();
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"p-1"});
}

TEST_CASE("No more pods are in flight than maxInFlight, and a pod that is gone frees its slot") {
  auto stage = many(4);
  stage.limits().max_in_flight = 2;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)) == Names{"p-0", "p-1"});
  CHECK(stage.reasons("p-2") == "TooManyInFlight");
  stage.remove_pod("p-0");
  CHECK(stage.settle() == Names{"p-2"});
}

TEST_CASE("The slots of evicted pods hold over a restart") {
  auto stage = many(4);
  stage.limits().max_in_flight = 2;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)) == Names{"p-0", "p-1"});
  stage.restart();
  CHECK(stage.run_for(Seconds(30)).empty());
  CHECK(stage.reasons("p-2") == "TooManyInFlight");
}

TEST_CASE("The slot of an evicted pod holds over a restart, also where our condition could not be written") {
  auto stage = many(4);
  stage.limits().max_in_flight = 1;
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  Names gone;
  while (gone.empty() && stage.now().mono < MonoTime(std::chrono::hours(2))) gone = stage.run_for(Seconds(1));
  REQUIRE(gone == Names{"p-0"});
  stage.pod_named("p-0").conditions.erase_if(
      [](const k8s::Condition& condition) { return condition.type == kConditionType; });
  stage.upsert_pod("p-0");
  SUBCASE("only the intention to evict is written down") {
    REQUIRE(stage.state_text().find("lostBy") == std::string::npos);
    stage.restart();
    CHECK(stage.run_for(Seconds(20)).empty());
  }
  SUBCASE("what came of it is written down") {
    stage.run_for(Seconds(20));
    REQUIRE(stage.state_text().find("lostBy") != std::string::npos);
    stage.restart();
    CHECK(stage.run_for(Seconds(20)).empty());
  }
  CHECK(stage.reasons("p-1").find("TooManyInFlight") != std::string::npos);
}

TEST_CASE(
    "A pod that hangs frees its slot two minutes after its grace period, to the millisecond, and is called stuck") {
  auto stage = many(2);
  stage.limits().max_in_flight = 1;
  stage.send_policy();
  stage.run_for(Seconds(60) - Millis(1));
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-0"});
  stage.advance(Seconds(150) - Millis(1));
  CHECK(stage.settle().empty());
  CHECK(stage.reasons("p-0") == "Evicted");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-1"});
  CHECK(stage.reasons("p-0") == "StuckTerminating");
  CHECK(stage.has_event("p-0", "StuckTerminating"));
}

TEST_CASE("No more pods of one node are in flight than perNode") {
  Stage stage;
  stage.limits() = {
      .evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 2, .per_owner = 100, .brake_at_least = 1000};
  stage.send_policy();
  stage.node("node-a", 16, 12);
  for (int i = 0; i < 4; ++i) {
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .device = fmt::format("gpu-{}", i),
               .health = Health::Unhealthy});
  }
  CHECK(stage.run_for(minutes(2)) == Names{"p-0", "p-1"});
  CHECK(stage.reasons("p-2") == "NodeLimit");
}

TEST_CASE("perOwner counts incidents: another device of the same owner waits, the same device does not") {
  auto stage = many(3, "ReplicaSet/web");
  stage.limits().per_owner = 1;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)) == Names{"p-0"});
  CHECK(stage.reasons("p-1") == "OwnerLimit");
  stage.remove_pod("p-0");
  CHECK(stage.settle() == Names{"p-1"});
}

TEST_CASE("Paused stops evictions in the same turn, and lets them go on") {
  auto stage = many(1);
  stage.limits().paused = true;
  stage.send_policy();
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("p-0") == "Paused");
  stage.limits().paused = false;
  stage.send_policy();
  CHECK(stage.settle() == Names{"p-0"});
}

TEST_CASE("A budget's refusal stays visible with the server's own sentence, and is tried again with a growing pause") {
  auto stage = many(1);
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  Millis waited{0};
  std::vector<Millis> pauses;
  for (int step = 0; step < 1000 && pauses.size() < 6; ++step) {
    const auto actions = stage.turn();
    for (const auto& action : actions) {
      if (std::holds_alternative<eviction::EvictPod>(action)) {
        pauses.push_back(waited);
        waited = Millis{0};
        stage.answer(action,
                     fail(ErrorKind::Blocked, "The disruption budget pd needs 1 healthy pods and has 1 currently"));
      } else {
        stage.answer(action);
      }
    }
    if (const auto* condition = actions.empty() ? nullptr : std::get_if<notice::ApplyCondition>(&actions.front())) {
      auto& pod = stage.pod_named("p-0");
      pod.conditions = {
          {"device-health.io/DeviceUnhealthy", "True", "DeviceUnhealthy", condition->wanted->message, {}}};
      stage.upsert_pod("p-0");
    }
    if (!evicted(actions).empty()) {  // the refusal arrives at once, and is news
      const auto news = stage.turn();
      CHECK(evicted(news).empty());
      for (const auto& event : news) stage.answer(event);
    }
    stage.advance(Millis(500));
    waited += Millis(500);
  }
  stage.turn();
  CHECK(stage.reasons("p-0") == "BlockedByBudget");
  CHECK(stage.verdict("p-0", Reason::BlockedByBudget)->message ==
        "Blocked: The disruption budget pd needs 1 healthy pods and has 1 currently; attempt 6");
  REQUIRE(pauses.size() == 6);
  CHECK(pauses[1] == Seconds(5));
  CHECK(pauses[2] == Seconds(10));
  CHECK(pauses[5] == Seconds(60));
}

TEST_CASE("After TimedOut an eviction is not repeated before a newer event of the pod, or 30 s") {
  auto stage = many(1);
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  const auto send = [&] {
    for (int i = 0; i < 5; ++i) {
      for (const auto& action : stage.turn()) {
        if (std::holds_alternative<eviction::EvictPod>(action)) {
          stage.answer(action, fail(ErrorKind::TimedOut, "no answer"));
          stage.turn();
          return true;
        }
        stage.answer(action);
        if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
          stage.pod_named("p-0").conditions = {
              {"device-health.io/DeviceUnhealthy", "True", "x", condition->wanted->message, {}}};
          stage.upsert_pod("p-0");
        }
      }
    }
    return false;
  };
  REQUIRE(send());
  stage.advance(Seconds(30) - Millis(1));
  CHECK(!send());
  stage.advance(Millis(1));
  CHECK(send());
  CHECK(!send());
  stage.upsert_pod("p-0");
  CHECK(send());
}

TEST_CASE("The plan does not depend on the order in which objects came") {
  const auto plan_of = [](std::vector<int> order) {
    Stage stage;
    stage.limits().evictions_per_minute = 6000;
    stage.send_policy();
    stage.settle();
    for (const int step : order) {
      if (step == 0) stage.node("node-a", 4, 3);
      if (step == 1) stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-0"});
      if (step == 2) stage.claim("c", {"gpu-0"}, "train-1");
      if (step == 3) stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unhealthy, .claim = "c"});
      if (step == 4) stage.pod({.name = "web-1", .device = "gpu-9", .health = Health::Unhealthy});
      stage.turn();
    }
    auto gone = stage.run_for(minutes(2));
    std::ranges::sort(gone);
    for (const auto& verdict : stage.verdicts())
      gone.push_back(fmt::format("{} {} {}", verdict.subject.name, to_string(verdict.reason), verdict.message));
    return gone;
  };
  std::vector<int> order = {0, 1, 2, 3, 4};
  const auto expected = plan_of(order);
  REQUIRE(expected.size() >= 2);
  CHECK(expected[0] == "train-1");
  CHECK(expected[1] == "web-1");
  while (std::ranges::next_permutation(order).found) CHECK(plan_of(order) == expected);
}

}  // namespace dhc::test
