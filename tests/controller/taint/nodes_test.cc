#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// A node with four plugin devices, of which `bad` are held and Unhealthy; the brake is out of the way.
Stage plugin_stage(int bad) {
  Stage stage;
  stage.policy().taint = TaintRules{.node = true};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4, 4 - bad);
  for (int i = 0; i < bad; ++i) {
    const auto n = std::to_string(i);
    stage.pod({.name = "p-" + n, .device = "gpu-" + n, .health = Health::Unhealthy});
  }
  return stage;
}

void clear_taints(Stage& stage) {
  auto node = stage.node_named("node-a");
  REQUIRE_FALSE(node.taints.empty());
  node.taints.clear();
  stage.put(node);
}

/// Both devices have recovered, the answer to the untaint was lost, and they are bad again.
Stage bad_again_after_a_lost_untaint() {
  auto stage = plugin_stage(2);
  stage.policy().after = Seconds(1);
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("p-0", Health::Healthy);
  stage.report("p-1", Health::Healthy);
  REQUIRE(loses_removal(stage));
  stage.report("p-0", Health::Unhealthy);
  stage.report("p-1", Health::Unhealthy);
  return stage;
}

}  // namespace

TEST_CASE("One bad device of four does not taint the node, and the kubelet no longer hands it out") {
  auto stage = plugin_stage(1);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage).empty());
  CHECK(stage.verdict("node-a", Reason::TaintNotNeeded)->message ==
        "no taint is needed: the kubelet no longer hands it out (3 of 4 example.com/gpu allocatable)");
  stage.node("node-a", 4, 4);
  stage.run_for(Seconds(1));
  CHECK(stage.reasons("node-a") == "NodeBelowThreshold");
}

TEST_CASE("A node's taint that a webhook takes away is written ever more rarely, and that is said") {
  auto stage = plugin_stage(2);
  stage.strip({.node = true});
  stage.run_for(minutes(5), Seconds(10));
  REQUIRE(stage.verdict("node-a", Reason::ChangedByOther) != nullptr);
  CHECK(stage.verdict("node-a", Reason::ChangedByOther)
            ->message.contains("accepted it several times, and it is not there"));
  const auto before = stage.writes().size();
  CHECK(before <= 7);
  stage.run_for(hours(2), Seconds(10));
  CHECK(stage.writes().size() <= before + 15);
  CHECK(stage.writes().size() >= before + 11);
  stage.strip({});
  for (int tries = 0; tries < 66 && stage.verdict("node-a", Reason::Tainted) == nullptr; ++tries)
    stage.run_for(Seconds(10));
  REQUIRE(stage.verdict("node-a", Reason::Tainted) != nullptr);
  CHECK(stage.verdict("node-a", Reason::ChangedByOther) == nullptr);
  // Its removal is another request, and waits for nothing.
  stage.policy().taint->node = false;
  stage.send_policy();
  stage.run_for(Seconds(20));
  CHECK(stage.writes().back() == "untaint node-a");
}

TEST_CASE("A node that is made anew is another one, and nobody has taken its taint away") {
  auto stage = plugin_stage(2);
  stage.run_for(minutes(2), Seconds(5));
  for (const std::string uid : {"second", "third", "fourth", "fifth"}) {
    CAPTURE(uid);
    auto node = stage.node_named("node-a");
    node.meta.uid = uid;
    node.taints.clear();
    stage.put(node);
    stage.run_for(Seconds(40));
    REQUIRE(stage.verdict("node-a", Reason::ChangedByOther) == nullptr);
    REQUIRE(stage.verdict("node-a", Reason::Tainted) != nullptr);
  }
}

TEST_CASE("nodeAtLeast counts devices and percent, and the verdict names the price") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.verdict("node-a", Reason::Tainted)
            ->message.starts_with(
                "2 of 4 devices of example.com/gpu on the node are bad; its taint takes 2 healthy ones out of use; "));
  auto below = plugin_stage(2);
  below.policy().taint->node_at_least_percent = 51;
  below.send_policy();
  below.run_for(Seconds(61));
  CHECK(deeds(below).empty());
}

TEST_CASE("nodeAtLeast counts physical cards, whatever number of devices each is offered as") {
  // Two cards as four devices each, all of one of them bad.
  const auto stage_with = [](const std::vector<std::string>& bad) {
    Stage stage;
    stage.policy().taint = TaintRules{.node = true, .node_at_least_percent = 50};
    stage.policy().evict.reset();
    stage.limits().brake_percent = 100;
    stage.send_policy();
    stage.node("node-a", 8);
    for (const auto* card : {"GPU-x", "GPU-y"}) {
      for (int i = 0; i < 4; ++i) {
        const auto id = std::string(card) + "::" + std::to_string(i);
        const bool is_bad = std::ranges::find(bad, id) != bad.end();
        stage.pod({.name = "p-" + id.substr(4, 1) + std::to_string(i),
                   .owner = "Job/" + id.substr(4, 1) + std::to_string(i),
                   .device = id,
                   .health = is_bad ? Health::Unhealthy : Health::Healthy});
      }
    }
    stage.run_for(Seconds(61));
    return stage;
  };
  auto one = stage_with({"GPU-x::0", "GPU-x::1", "GPU-x::2", "GPU-x::3"});
  CHECK(deeds(one).empty());
  REQUIRE(one.verdict("node-a", Reason::NodeBelowThreshold) != nullptr);
  CHECK(one.verdict("node-a", Reason::NodeBelowThreshold)->message ==
        "1 of 2 devices of example.com/gpu on the node are bad, nodeAtLeast is 2 and 50 percent");
  auto both = stage_with({"GPU-x::0", "GPU-x::1", "GPU-y::3"});
  CHECK(deeds(both) == "taint node-a");
  CHECK(both.verdict("node-a", Reason::Tainted)
            ->message.starts_with(
                "2 of 2 devices of example.com/gpu on the node are bad; its taint takes 0 healthy ones out of use; "));
}

TEST_CASE("nodeAtLeast counts the partitions of a card as one where the API server has no DeviceTaintRules") {
  for (const bool same_card : {true, false}) {
    CAPTURE(same_card);
    Stage stage;
    stage.policy().taint = TaintRules{.node = true, .node_at_least_percent = 1};
    stage.policy().evict.reset();
    stage.limits().brake_percent = 100;
    stage.send_policy();
    stage.node("node-a", 0);
    const auto parent = [&](int i) { return "GPU-" + std::to_string(same_card ? i / 2 : i); };
    std::vector<k8s::SliceDevice> devices;
    for (int i = 0; i < 4; ++i) {
      devices.push_back({.name = "gpu-" + std::to_string(i), .taints = {}, .attributes = {{"parentUUID", parent(i)}}});
    }
    publish(stage, std::move(devices));
    stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
    for (int i = 0; i < 2; ++i) {
      const auto name = "train-" + std::to_string(i);
      stage.claim(name + "-gpu", {"gpu-" + std::to_string(i)}, name);
      stage.pod({.name = name, .owner = "Job/" + name, .health = Health::Unhealthy, .claim = name + "-gpu"});
    }
    stage.run_for(Seconds(61));
    CHECK(deeds(stage) == (same_card ? "" : "taint node-a"));
    if (same_card) {
      REQUIRE(stage.verdict("node-a", Reason::NodeBelowThreshold) != nullptr);
      CHECK(stage.verdict("node-a", Reason::NodeBelowThreshold)->message ==
            "1 of 2 devices of gpu.example.com on the node are bad, nodeAtLeast is 2 and 1 percent");
    }
  }
}

TEST_CASE("Only our taint is added and removed, and at its own place") {
  auto stage = plugin_stage(2);
  auto node = stage.node_named("node-a");
  node.taints = {{"theirs", "x", "NoSchedule"}};
  node.unschedulable = true;
  stage.put(node);
  stage.run_for(Seconds(61));
  CHECK(stage.node_named("node-a").taints == std::vector<k8s::Taint>{{"theirs", "x", "NoSchedule"}, node_taint()});
  stage.report("p-0", Health::Healthy);
  stage.report("p-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  CHECK(stage.node_named("node-a").taints == std::vector<k8s::Taint>{{"theirs", "x", "NoSchedule"}});
  CHECK(stage.node_named("node-a").unschedulable);
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  CHECK(stage.verdict("node-a", Reason::Untainted)->message == "a pod that holds it has reported Healthy for 10 min");
}

TEST_CASE("A node taint that an operator removes is not made again until a new incident") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  auto node = stage.node_named("node-a");
  node.taints.clear();
  stage.put(node);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.reasons("node-a") == "Acknowledged Acknowledged");
}

TEST_CASE("A node taint that an operator removes before we have seen it is not made again either") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  // Made and removed between two turns.
  stage.restart();
  clear_taints(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.reasons("node-a") == "Acknowledged Acknowledged");
}

TEST_CASE("An operator's removal of a node's taint counts, although the answer to our own was lost before") {
  auto stage = bad_again_after_a_lost_untaint();
  stage.run_for(minutes(4));
  const auto before = deeds(stage);
  clear_taints(stage);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == before);
  CHECK(stage.reasons("node-a") == "Acknowledged Acknowledged");
}

TEST_CASE("A node's taint that goes late, by our own untaint whose answer was lost, is no operator's word") {
  auto stage = bad_again_after_a_lost_untaint();
  stage.run_for(Seconds(20));
  const auto before = deeds(stage);
  clear_taints(stage);
  stage.run_for(minutes(2));
  CHECK(deeds(stage) == before + ", taint node-a");
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
}

TEST_CASE("What a standby sees go from a node may be its leader's doing, and is no operator's word") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  stage.restart();
  stage.deliver(Leading{.leads = false});
  stage.settle();
  clear_taints(stage);
  stage.settle();
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(2));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  CHECK(deeds(stage) == "taint node-a, taint node-a");
}

TEST_CASE("Our own removal of a node's taint is no word about the devices that are still bad") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  stage.report("p-0", Health::Healthy);
  stage.run_for(minutes(12), Seconds(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.report("p-0", Health::Unhealthy);
  stage.run_for(minutes(2));
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a");
}

TEST_CASE("A node that is made anew has not been acknowledged by anybody") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  auto node = stage.node_named("node-a");
  stage.remove(k8s::Kind::Node, "node-a");
  node.taints.clear();
  node.meta.uid = "uid-node-a-again";
  stage.put(node);
  stage.run_for(Seconds(5));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  CHECK(deeds(stage) == "taint node-a, taint node-a");
}

TEST_CASE("A node's taint made for DRA devices goes when the server has DeviceTaintRules") {
  auto stage = gpu_stage({.node = true, .node_at_least_devices = 1, .node_at_least_percent = 1});
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.deliver(k8s::Delivery(
      k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .api_version = "resource.k8s.io/v1"}));
  stage.run_for(Seconds(5));
  CHECK(deeds(stage) == "taint node-a, apply NoSchedule gpu-0, untaint node-a");
}

TEST_CASE("Somebody else's taint with our key is not ours, and says nothing") {
  auto stage = plugin_stage(1);
  auto node = stage.node_named("node-a");
  node.taints = {{std::string(kTaintKey), "maintenance", "NoSchedule"}};
  stage.put(node);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
}

TEST_CASE("A node taint that an operator changes is left alone") {
  auto stage = plugin_stage(2);
  stage.run_for(Seconds(61));
  auto node = stage.node_named("node-a");
  node.taints.front().effect = "PreferNoSchedule";
  stage.put(node);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("The eviction of a plugin pod waits for the node's taint where the policy has one") {
  auto stage = plugin_stage(2);
  stage.policy().evict = EvictRules{};
  stage.send_policy();
  stage.settle();
  stage.advance(Seconds(60));
  for (const auto& action : stage.turn()) {
    if (!std::holds_alternative<taint::PatchNodeTaint>(action)) stage.answer(action);
  }
  stage.advance(minutes(5));
  stage.turn();
  CHECK(stage.verdict("p-0", Reason::WaitingForTaint) != nullptr);
}

TEST_CASE("DRA devices of a server without DeviceTaintRules fall back to the node") {
  auto stage = gpu_stage({.node = true, .node_at_least_devices = 1, .node_at_least_percent = 1});
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
  stage.node("node-b", 0);
  stage.slice("node-b", {"gpu-0"});
  CHECK(stage.run_for(Seconds(61)) == std::vector<std::string>{"train-1"});
  CHECK(deeds(stage) == "taint node-a, evict train-1");
}

}  // namespace dhc::test
