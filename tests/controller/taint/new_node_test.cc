// A node that was made anew under its name.
#include <doctest/doctest.h>

#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Deletes the node and makes another under its name.
void make_anew(Stage& stage, const std::string& name) {
  auto node = stage.node_named(name);
  stage.remove(k8s::Kind::Node, name);
  stage.settle();
  node.meta.uid = "uid-" + name + "-again";
  node.taints.clear();
  stage.put(node);
}

/// Two cards; the first says its UUID, unless that is empty.
void publish_card(Stage& stage, const std::string& uuid) {
  std::vector<k8s::SliceDevice> devices = {{.name = "gpu-0", .taints = {}}, {.name = "gpu-1", .taints = {}}};
  if (!uuid.empty()) devices.front().attributes = {{"uuid", uuid}};
  publish(stage, std::move(devices));
}

/// The pod on gpu-0 has been evicted, and its rule stands.
Stage tainted(const std::string& uuid) {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  publish_card(stage, uuid);
  stage.run_for(minutes(3), Seconds(10));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(1));
  REQUIRE(stage.rule() != nullptr);
  return stage;
}

}  // namespace

TEST_CASE("A node made anew under its name starts clean, also after a restart in between") {
  for (const bool restart : {false, true}) {
    CAPTURE(restart);
    auto stage = tainted("");
    if (restart) stage.restart();
    make_anew(stage, "node-a");
    stage.run_for(minutes(1));
    CHECK(stage.rule() == nullptr);
    const auto* verdict = stage.verdict("node-a", Reason::Untainted);
    REQUIRE(verdict != nullptr);
    CHECK(verdict->message.find("its node was recreated under its name") != std::string::npos);
    CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  }
}

TEST_CASE("A process that dies between the word that the node is another and the removal of the rule removes it") {
  auto stage = tainted("");
  auto node = stage.node_named("node-a");
  node.meta.uid = "uid-node-a-again";
  stage.put(node);
  bool is_written = false;
  for (int i = 0; i < 10 && !is_written; ++i) {
    for (const auto& action : stage.turn()) {
      const auto* state = std::get_if<incident_state::WriteState>(&action);
      if (state == nullptr) continue;
      stage.put(state_map(state->text));
      is_written = state->text.find("uid-node-a-again") != std::string::npos;
    }
    stage.advance(Seconds(5));
  }
  REQUIRE(is_written);
  REQUIRE(stage.rule() != nullptr);
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("A rule that an operator changed stays also when its node is made anew") {
  auto stage = tainted("");
  auto rule = *stage.rule();
  rule.taint.effect = "None";
  stage.put(rule);
  stage.run_for(minutes(1));
  make_anew(stage, "node-a");
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.rule() != nullptr);
  CHECK(stage.rule()->taint.effect == "None");
}

TEST_CASE("A node that went away and came back under its UID keeps its incidents") {
  auto stage = tainted("");
  const auto node = stage.node_named("node-a");
  stage.remove(k8s::Kind::Node, "node-a");
  stage.run_for(minutes(1));
  stage.put(node);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.rule() != nullptr);
  CHECK(stage.verdict("node-a", Reason::Untainted) == nullptr);
}

TEST_CASE("An incident before a node was made anew says nothing about its new pod, also for the next process") {
  for (const bool restart : {false, true}) {
    CAPTURE(restart);
    Stage stage;
    stage.policy().evict.reset();
    stage.whole_policy().own_namespace = "dhc";
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .device = "card0-0", .health = Health::Unhealthy});
    stage.run_for(minutes(5), Seconds(10));
    REQUIRE(stage.has_event("a", "DeviceUnhealthy"));
    stage.remove_pod("a");
    if (restart) stage.restart();
    make_anew(stage, "node-a");
    stage.pod({.name = "b", .device = "card0-0", .health = Health::Unhealthy});
    if (restart) stage.restart();
    stage.run_for(Seconds(59));
    CHECK_FALSE(stage.has_event("b", "DeviceUnhealthy"));
    stage.run_for(Seconds(2));
    CHECK(stage.has_event("b", "DeviceUnhealthy"));
  }
}

TEST_CASE("The same card on a node made anew keeps its incident, another one does not") {
  SUBCASE("the same") {
    auto stage = tainted("GPU-1");
    make_anew(stage, "node-a");
    stage.run_for(hours(1), minutes(1));
    CHECK(stage.rule() != nullptr);
  }
  SUBCASE("another") {
    auto stage = tainted("GPU-1");
    make_anew(stage, "node-a");
    publish_card(stage, "GPU-2");
    stage.run_for(minutes(1));
    CHECK(stage.rule() == nullptr);
  }
  SUBCASE("one that does not say") {
    auto stage = tainted("GPU-1");
    make_anew(stage, "node-a");
    publish_card(stage, "");
    stage.run_for(minutes(1));
    CHECK(stage.rule() == nullptr);
  }
}

TEST_CASE("Nothing is decided about a card of a node made anew before its driver publishes it") {
  auto stage = tainted("GPU-1");
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  make_anew(stage, "node-a");
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
  publish_card(stage, "GPU-1");
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("Unhealthy of a device plugin's device before its node was made anew counts for a UUID only") {
  for (const std::string device : {"card0-0", "GPU-0f3c1d2e-5a6b-4c7d-8e9f-001122334455"}) {
    CAPTURE(device);
    Stage stage;
    stage.policy().evict.reset();
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .device = device, .health = Health::Unhealthy});
    stage.run_for(Seconds(50));
    stage.remove_pod("a");
    make_anew(stage, "node-a");
    stage.pod({.name = "b", .device = device, .health = Health::Unhealthy});
    stage.run_for(Seconds(20));
    CHECK(stage.has_event("b", "DeviceUnhealthy") == device.starts_with("GPU-"));
  }
}

TEST_CASE("An update of a node says nothing about its devices") {
  auto stage = tainted("");
  for (int i = 0; i < 5; ++i) {
    stage.put(stage.node_named("node-a"));
    stage.run_for(minutes(1));
  }
  CHECK(stage.rule() != nullptr);
}

}  // namespace dhc::test
