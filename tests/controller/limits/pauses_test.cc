// Pauses of parts of the cluster: what they hold, what they leave alone, and that they end by themselves.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "tests/controller/eviction/gang_stage.h"
#include "tests/controller/job_retry/job_stage.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Two nodes, on each a pod with a claim of its own on a bad DRA device, `a` and `b`.
Stage two_nodes() {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.limits() = {
      .evictions_per_minute = 600, .max_in_flight = 50, .per_node = 50, .per_owner = 50, .brake_at_least = 99};
  stage.send_policy();
  for (const std::string name : {"a", "b"}) {
    stage.node("node-" + name, name == "a" ? 0 : 4, name == "a" ? 0 : 3);
    stage.node_named("node-" + name).meta.labels = {{"pool", name}};
    stage.put(stage.node_named("node-" + name));
    stage.slice("node-" + name, kFourGpus);
  }
  // The stage's claims are on node-a.
  stage.claim("gpu-a", {"gpu-0"}, "a");
  stage.pod({.name = "a", .owner = "ReplicaSet/a", .health = Health::Unhealthy, .message = "Xid 79", .claim = "gpu-a"});
  stage.pod({.name = "b", .node = "node-b", .owner = "ReplicaSet/b", .device = "gpu-9", .health = Health::Unhealthy});
  return stage;
}

ScopedPause part(WallTime until) {
  ScopedPause pause;
  pause.until = until;
  pause.reason = "new switches";
  pause.by = "alice";
  return pause;
}

LabelSelector in_pool(const std::string& value) {
  return {.requirements = {{.key = "pool", .op = LabelSelector::Operator::In, .values = {value}}}};
}

}  // namespace

TEST_CASE(
    "A pause of a part holds what belongs to it up to its end, says what, until when, who and why, and no other") {
  auto stage = two_nodes();
  auto pause = part(stage.now().wall + minutes(10));
  std::string what;
  SUBCASE("node") {
    pause.nodes = {"node-a"};
    what = "node node-a";
  }
  SUBCASE("node by glob and selector") {
    pause.nodes = {"node-?"};
    pause.node_labels = in_pool("a");
    what = "node node-?; nodes with pool=a";
  }
  SUBCASE("driver") {
    pause.drivers = {std::string(kDriver)};
    what = fmt::format("driver {}", kDriver);
  }
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(10) - Seconds(1)) == std::vector<std::string>{"b"});
  CHECK(stage.rule() == nullptr);
  const auto* held = stage.verdict("a", Reason::Paused);
  REQUIRE(held != nullptr);
  CHECK(held->message == fmt::format("paused until 2026-11-20T12:10:00Z for {}, by alice: new switches", what));
  CHECK(held->next_at == parse_rfc3339("2026-11-20T12:10:00Z"));
  CHECK(stage.verdict("node-a", Reason::Paused) != nullptr);
  CHECK(stage.controller().stats().pauses == 1);
  CHECK(stage.run_for(Seconds(3)) == std::vector<std::string>{"a"});
  CHECK(stage.rule() != nullptr);
  CHECK(stage.controller().stats().pauses == 0);
}

TEST_CASE("A pause of a resource or namespace leaves drivers and other namespaces alone") {
  auto stage = two_nodes();
  auto pause = part(stage.now().wall + hours(1));
  SUBCASE("resource") { pause.resources = {"example.com/*"}; }
  SUBCASE("namespace") {
    pause.namespaces = {"ml"};
    stage.policy().evict->bare_pods = true;  // the stage's owners are all in `default`
    stage.pod({.name = "b", .node = "node-b", .owner = "", .device = "gpu-9", .health = Health::Unhealthy, .ns = "ml"});
  }
  stage.limits().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(5)) == std::vector<std::string>{"a"});
  CHECK(stage.reasons("b").contains("Paused"));
}

TEST_CASE("A pause of a namespace keeps the devices that its pods hold from being tainted") {
  auto stage = two_nodes();
  auto pause = part(stage.now().wall + minutes(10));
  pause.namespaces = {"default"};
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(9)).empty());
  CHECK(stage.rule() == nullptr);
  CHECK(stage.run_for(minutes(2)).size() == 2);
}

TEST_CASE("A pause of several namespaces names to each tenant no other's") {
  GangStage stage;
  stage.policy().evict->notice = NoticeRules{};
  auto pause = part(stage.now().wall + hours(1));
  pause.namespaces = {"acme-secret", "def*", "rival-*"};
  SUBCASE("of ControllerLimits") { stage.limits().pauses = {pause}; }
  SUBCASE("of an annotation") { stage.whole_policy().pauses = {pause}; }
  stage.send_policy();
  stage.run_for(minutes(20), Seconds(10));
  REQUIRE(stage.verdict("w-0", Reason::Paused) != nullptr);
  bool is_told = false;
  const auto look_at = [&](std::string_view words) {
    CAPTURE(words);
    CHECK_FALSE(words.contains("acme"));
    CHECK_FALSE(words.contains("rival"));
    is_told = is_told || words.contains("for namespace default, by alice: new switches");
  };
  REQUIRE(!stage.conditions().empty());
  for (const auto& condition : stage.conditions()) {
    if (condition.wanted) look_at(condition.wanted->message);
    look_at(condition.notice);
  }
  for (const auto& event : stage.events()) {
    if (event.regarding.kind == "Pod") look_at(event.note);
  }
  CHECK(is_told);
}

TEST_CASE("Of several pauses the last to end is said, and the shorter one ends unheard") {
  auto stage = two_nodes();
  auto first = part(stage.now().wall + minutes(5));
  first.nodes = {"node-a"};
  auto second = part(stage.now().wall + minutes(8));
  second.drivers = {"*"};
  stage.limits().pauses = {first};
  stage.whole_policy().pauses = {second};
  stage.whole_policy().pause_until = format_rfc3339(stage.now().wall + minutes(3));
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.verdict("a", Reason::Paused)->message.contains("driver *"));
  CHECK(stage.verdict("b", Reason::Paused)->message == "paused until 2026-11-20T12:03:00Z");
  CHECK(stage.run_for(minutes(6) - Seconds(1)) == std::vector<std::string>{"b"});
  CHECK(stage.run_for(Seconds(3)) == std::vector<std::string>{"a"});
}

TEST_CASE("A pause that ends while something else holds the eviction gives the Job its retry back at once") {
  JobStage stage;
  stage.policy().evict->after = minutes(30);
  auto pause = part(stage.now().wall + minutes(10));
  pause.namespaces = {"default"};
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(minutes(10) - Seconds(1));
  CHECK(stage.credits().credits.empty());
  stage.run_for(Seconds(2));
  CHECK(stage.states() == "given");
}

TEST_CASE("A Job's pod that died under a pause is credited when it ends") {
  JobStage stage;
  auto pause = part(stage.now().wall + minutes(10));
  pause.nodes = {"node-a"};
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(minutes(2));
  auto& pod = stage.pod_named("train-0");
  pod.phase = k8s::PodPhase::Failed;
  stage.upsert_pod("train-0");
  stage.run_for(minutes(8) - Seconds(1));
  CHECK(stage.credits().credits.empty());
  stage.run_for(Seconds(2));
  CHECK(stage.states() == "spent");
}

TEST_CASE("A gang stays while one of its pods is on a paused node") {
  GangStage stage;
  auto pause = part(stage.now().wall + minutes(10));
  pause.nodes = {"node-3"};
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(9)).empty());
  CHECK(stage.verdict("w-0", Reason::Paused) != nullptr);
  const auto last_words = [&] {
    std::string words;
    for (const auto& condition : stage.conditions()) {
      if (condition.name == "w-0") words = condition.wanted->message;
    }
    return words;
  };
  CHECK(last_words().contains("; next: no eviction (Paused)"));
  CHECK(stage.run_for(minutes(3)).size() == 4);
  CHECK(last_words().contains("; next: eviction, due at"));
}

TEST_CASE("A label that brings a node under a pause, or out of it, counts at once") {
  auto stage = two_nodes();
  auto pause = part(stage.now().wall + hours(1));
  pause.node_labels = in_pool("a");
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(5)) == std::vector<std::string>{"b"});
  stage.node_named("node-a").meta.labels = {};
  stage.put(stage.node_named("node-a"));
  stage.settle();
  CHECK(stage.run_for(Seconds(2)).size() <= 1);
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("What is tainted is untainted under a pause of its part, and an end that has come holds nothing") {
  auto stage = two_nodes();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(2));
  REQUIRE(stage.rule() != nullptr);
  auto pause = part(stage.now().wall + hours(1));
  pause.nodes = {"*"};
  auto past = part(stage.now().wall);
  past.nodes = {"*"};
  stage.whole_policy().pauses = {pause, past};
  stage.send_policy();
  stage.report("a", Health::Healthy);
  stage.run_for(minutes(12));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.controller().stats().pauses == 1);
}

TEST_CASE("A new process holds what the annotation says") {
  auto stage = two_nodes();
  auto pause = part(stage.now().wall + minutes(10));
  pause.nodes = {"node-*"};
  stage.whole_policy().pauses = {pause};
  stage.send_policy();
  CHECK(stage.run_for(minutes(5)).empty());
  stage.restart();
  CHECK(stage.run_for(minutes(5) - Seconds(1)).empty());
  CHECK(stage.run_for(minutes(3)).size() == 2);
}

}  // namespace dhc::test
