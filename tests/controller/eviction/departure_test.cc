// A node on its way out, and one that is only cordoned.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/incidents/state_text.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

constexpr auto kCordonTaint = "node.kubernetes.io/unschedulable";

/// A pod on a bad device whose incident opens in a minute.
Stage bad_stage() {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.node("node-b", 4, 4);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  return stage;
}

template <class Change>
void change_node(Stage& stage, Change change) {
  auto node = stage.node_named("node-a");
  change(node);
  stage.put(node);
}

/// As `kubectl cordon`, and the node lifecycle controller's taint if it is there.
void cordon(Stage& stage, std::optional<WallTime> added = {}) {
  change_node(stage, [&](k8s::Node& node) {
    node.unschedulable = true;
    if (added) node.taints = {{kCordonTaint, "", "NoSchedule", added}};
  });
}

void uncordon(Stage& stage) {
  change_node(stage, [](k8s::Node& node) {
    node.unschedulable = false;
    node.taints.clear();
  });
}

}  // namespace

TEST_CASE("Nobody is evicted from a node on its way out, and all who should be go when it stays after all") {
  auto stage = bad_stage();
  SUBCASE("drained") {
    change_node(stage, [](k8s::Node& node) { node.lifecycle = "DrainInProgress"; });
  }
  SUBCASE("deleted by an autoscaler") {
    change_node(
        stage, [](k8s::Node& node) { node.taints = {{"ToBeDeletedByClusterAutoscaler", "1700000000", "NoSchedule"}}; });
  }
  SUBCASE("deleted") {
    change_node(stage, [&](k8s::Node& node) { node.meta.deletion = stage.now().wall; });
  }
  CHECK(stage.run_for(hours(2), Seconds(30)).empty());
  CHECK(stage.reasons("web-1") == "NodeLeaving");
  change_node(stage, [](k8s::Node& node) {
    node.lifecycle.clear();
    node.taints.clear();
    node.meta.deletion.reset();
  });
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
}

TEST_CASE("A cordon delays an eviction until cordonWait has passed since its taint was added, to the millisecond") {
  auto stage = bad_stage();
  stage.run_for(Seconds(10));
  cordon(stage, stage.now().wall);
  CHECK(stage.run_for(minutes(30) - Seconds(1), Seconds(1)).empty());
  CHECK(stage.reasons("web-1") == "NodeCordoned");
  const auto* verdict = stage.verdict("web-1", Reason::NodeCordoned);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->message == "node node-a is cordoned; evict.cordonWait of policy p is 1800 s");
  REQUIRE(stage.wake_at());
  CHECK(*stage.wake_at() <= stage.now().mono + Seconds(1));
  stage.advance(Seconds(1) - Millis(1));
  CHECK(stage.settle().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("A cordon that is older than cordonWait delays nothing") {
  auto stage = bad_stage();
  cordon(stage, stage.now().wall - minutes(30));
  CHECK(stage.run_for(minutes(3)) == Names{"web-1"});
}

TEST_CASE("A cordon without a taint counts from when it was seen, and a restart begins anew") {
  auto stage = bad_stage();
  cordon(stage);
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  stage.restart();
  CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
  CHECK(stage.reasons("web-1") == "NodeCordoned");
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("A cordon with a taint goes on over a restart") {
  auto stage = bad_stage();
  cordon(stage, stage.now().wall);
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
  stage.restart();
  CHECK(stage.run_for(minutes(9), Seconds(10)).empty());
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("A cordon that is lifted lets the eviction go at once, and a second one begins anew") {
  auto stage = bad_stage();
  cordon(stage);
  CHECK(stage.run_for(minutes(25), Seconds(10)).empty());
  SUBCASE("lifted") {
    uncordon(stage);
    CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  }
  SUBCASE("lifted for a moment, within which nothing is planned") {
    uncordon(stage);
    stage.turn();
    cordon(stage);
    CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
  }
}

TEST_CASE("With cordonWait: 0s a cordon delays nothing") {
  auto stage = bad_stage();
  stage.policy().evict->cordon_wait = Millis(0);
  stage.send_policy();
  cordon(stage, stage.now().wall);
  CHECK(stage.run_for(minutes(3)) == Names{"web-1"});
}

TEST_CASE("An incident that opens on a node on its way out adds no penalty, and one that opened before keeps its own") {
  for (const bool leaving : {true, false}) {
    CAPTURE(leaving);
    auto stage = bad_stage();
    stage.whole_policy().own_namespace = "dhc";
    stage.policy().evict.reset();
    stage.send_policy();
    if (leaving) change_node(stage, [](k8s::Node& node) { node.lifecycle = "MaintenanceInProgress"; });
    const auto remembered = [&] {
      const auto content = parse_state(stage.state_text());
      REQUIRE(content.records.size() == 1);
      return content.records.front();
    };
    stage.run_for(Seconds(90));
    CHECK(remembered().is_open());
    CHECK(remembered().past.count == 1);
    CHECK(remembered().past.penalty == (leaving ? 0 : 1));
    change_node(stage, [&](k8s::Node& node) { node.lifecycle = leaving ? "" : "Drained"; });
    stage.run_for(minutes(5), Seconds(10));
    CHECK(remembered().past.penalty == (leaving ? 0 : 1));
  }
}

}  // namespace dhc::test
