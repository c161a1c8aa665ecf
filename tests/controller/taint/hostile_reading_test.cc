// What a hostile reading of taints and the stored state found, each as a test.
#include <algorithm>
#include <string>
#include <variant>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

Stage remembering_gpus() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  return stage;
}

/// A node whose four plugin devices are held by pods, of which the first two are Unhealthy.
Stage plugin_node() {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.node = true};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4, 2);
  for (int i = 0; i < 4; ++i) {
    const auto n = std::to_string(i);
    stage.pod({.name = "p-" + n, .device = "gpu-" + n, .health = i < 2 ? Health::Unhealthy : Health::Healthy});
  }
  return stage;
}

void uuid_of_one(Stage& stage, const std::string& uuid) {
  publish(stage, {{.name = "gpu-0", .taints = {}, .attributes = {{"uuid", uuid}}}});
}

void uuid_of_all(Stage& stage, const std::string& uuid) {
  std::vector<k8s::SliceDevice> devices;
  for (const auto& name : kFourGpus) devices.push_back({.name = name, .taints = {}, .attributes = {{"uuid", uuid}}});
  publish(stage, std::move(devices));
}

/// Up to the first action of this kind, which nobody answers. False: none came within twenty minutes.
template <class Asked>
bool leaves_unanswered(Stage& stage) {
  bool asked = false;
  for (int i = 0; i < 1200 && !asked; ++i) {
    for (const auto& action : stage.turn()) {
      asked = asked || std::holds_alternative<Asked>(action);
      if (asked) continue;
      stage.show(action);
      stage.answer(action);
    }
    stage.advance(Seconds(1));
  }
  return asked;
}

}  // namespace

TEST_CASE("That a policy takes its rule back is no operator's word, also for the process after us") {
  auto stage = remembering_gpus();
  stage.run_for(Seconds(70));
  // The state has just been written, and is not again for five seconds.
  stage.report("train-1", Health::Healthy);
  stage.settle();
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  const auto kept = stage.policy();
  stage.policy().taint.reset();
  stage.send_policy();
  for (int i = 0; i < 60 && stage.rule() != nullptr; ++i) stage.run_for(Seconds(1));
  REQUIRE(stage.rule() == nullptr);
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.policy() = kept;
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("That too few of a node's devices are bad now is no operator's word, also for the process after us") {
  auto stage = plugin_node();
  stage.policy().taint->node_at_least_devices = 2;
  stage.send_policy();
  stage.run_for(Seconds(70));
  REQUIRE(deeds(stage) == "taint node-a");
  stage.report("p-0", Health::Healthy);
  for (int i = 0; i < 1200 && our_taint_on(stage.node_named("node-a")); ++i) stage.run_for(Seconds(1));
  REQUIRE(deeds(stage) == "taint node-a, untaint node-a");
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.report("p-0", Health::Unhealthy);
  stage.run_for(minutes(2));
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a");
}

TEST_CASE("A node that is wanted tainted again forgets that it was to be untainted") {
  auto stage = plugin_node();
  stage.run_for(Seconds(70));
  stage.report("p-0", Health::Healthy);
  for (int i = 0; i < 1200 && stage.state_text().find(R"("node":{"phase":"Leaving")") == std::string::npos; ++i) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<taint::PatchNodeTaint>(action)) {
        stage.answer(action, fail(ErrorKind::Unavailable, "no"));
      } else {
        stage.answer(action);
        if (const auto* state = std::get_if<incident_state::WriteState>(&action))
          stage.put(state_map(state->text, state->ns));
      }
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(stage.state_text().find(R"("node":{"phase":"Leaving")") != std::string::npos);
  stage.report("p-0", Health::Unhealthy);
  stage.run_for(minutes(2));
  REQUIRE(our_taint_on(stage.node_named("node-a")));
  CHECK(stage.state_text().find(R"("node":{"phase":"Leaving")") == std::string::npos);
  stage.node_named("node-a").taints.clear();
  stage.put(stage.node_named("node-a"));
  stage.run_for(minutes(5));
  CHECK_FALSE(our_taint_on(stage.node_named("node-a")));
}

TEST_CASE("Where a policy asks for Unknown, an Unknown device is tainted, and its pod evicted") {
  auto stage = gpu_stage();
  stage.policy().match.health = {Health::Unhealthy, Health::Unknown};
  stage.send_policy();
  stage.report("train-1", Health::Unknown);
  stage.run_for(minutes(3));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
}

TEST_CASE("More owners that lost a pod to one device than are written down do not make it write without end") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = Seconds(0);
  stage.policy().evict->no_replacement_wait = Seconds(0);
  stage.limits().max_in_flight = 20;
  stage.limits().per_node = 20;
  stage.limits().evictions_per_minute = 100;
  stage.send_policy();
  stage.node("node-a", 4, 3);
  for (int i = 0; i < 14; ++i) {
    const auto n = std::to_string(i);
    stage.pod({.name = "web-" + n, .owner = "ReplicaSet/" + n, .device = "gpu-0", .health = Health::Unhealthy});
  }
  const auto gone = stage.run_for(minutes(2));
  REQUIRE(gone.size() == 14);
  for (const auto& name : gone) stage.remove_pod(name);
  stage.run_for(Seconds(30));
  const auto before = std::ranges::count(stage.writes(), "state");
  stage.run_for(minutes(10), Seconds(1));
  CHECK(std::ranges::count(stage.writes(), "state") == before);
}

TEST_CASE("An acknowledgement does not make the next process evict a replacement from the same device again") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->after = Seconds(0);
  stage.policy().recover.healthy_for = Seconds(1);
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  REQUIRE(stage.run_for(minutes(2)).size() == 1);
  stage.remove_pod("web-1");
  stage.node_named("node-a").meta.annotations = {{std::string(kAcknowledgeAnnotation), "2026-11-20T12:03:00Z"}};
  stage.put(stage.node_named("node-a"));
  stage.run_for(minutes(40), Seconds(10));
  stage.restart();
  stage.pod({.name = "web-2", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("web-2") == "ReplacementOnSameDevice");
}

TEST_CASE("A node's taint of which nothing is remembered is held as long as a device without evidence") {
  auto stage = plugin_node();
  stage.run_for(Seconds(70));
  REQUIRE(deeds(stage) == "taint node-a");
  for (const std::string pod : {"p-0", "p-1", "p-2", "p-3"}) stage.remove_pod(pod);
  stage.put(state_map("{"));
  stage.restart();
  // Whose rules held is forgotten too: the shipped ones do.
  stage.run_for(hours(71), minutes(10));
  CHECK(deeds(stage) == "taint node-a");
  stage.run_for(hours(2), minutes(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
}

TEST_CASE("A further bad device, under a policy that does not taint nodes, does not untaint the node") {
  auto stage = plugin_node();
  stage.run_for(Seconds(70));
  REQUIRE(deeds(stage) == "taint node-a");
  auto other = stage.policy();
  other.name = "other";
  other.priority = 10;
  other.taint = TaintRules{};
  other.match.pods.requirements = {{.key = "app", .op = LabelSelector::Operator::In, .values = {"other"}}};
  stage.whole_policy().policies.insert(stage.whole_policy().policies.begin(), other);
  stage.send_policy();
  stage.pod_named("p-2").meta.labels = {{"app", "other"}};
  stage.upsert_pod("p-2");
  stage.report("p-2", Health::Unhealthy);
  stage.run_for(minutes(30), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("A rule that an operator changed is left alone in the next incident too, and its removal is a word") {
  auto stage = remembering_gpus();
  stage.run_for(Seconds(61));
  auto rule = *stage.rule();
  rule.taint.effect = "None";
  stage.put(rule);
  stage.run_for(minutes(1));
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(2));
  CHECK(stage.reasons("node-a") == "ChangedByOther Acknowledged");
  stage.remove(k8s::Kind::DeviceTaintRule, rule.meta.name);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

TEST_CASE("A new incident keeps the rule of the one before if its removal has not been sent") {
  auto stage = remembering_gpus();
  stage.run_for(Seconds(61));
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(2));
  stage.policy().mode = Mode::Enforce;
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(2));
  CHECK(stage.rule() != nullptr);
  CHECK(deeds(stage).find("delete") == std::string::npos);
}

TEST_CASE("A rule's removal that the leader before asked for, and that comes late, is no operator's word") {
  for (const bool late : {true, false}) {
    CAPTURE(late);
    auto stage = remembering_gpus();
    stage.run_for(Seconds(70));
    stage.report("train-1", Health::Healthy);
    REQUIRE(leaves_unanswered<taint::DeleteRule>(stage));
    stage.restart();
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(late ? Seconds(90) : minutes(3));
    REQUIRE(stage.rule() != nullptr);
    stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
    stage.run_for(minutes(3));
    CHECK((stage.rule() != nullptr) == late);
    CHECK((stage.verdict("node-a", Reason::Acknowledged) == nullptr) == late);
  }
}

TEST_CASE("A node's untaint that the leader before asked for, and that comes late, is no operator's word") {
  for (const bool late : {true, false}) {
    CAPTURE(late);
    auto stage = plugin_node();
    stage.run_for(Seconds(70));
    REQUIRE(our_taint_on(stage.node_named("node-a")));
    stage.report("p-0", Health::Healthy);
    stage.report("p-1", Health::Healthy);
    REQUIRE(leaves_unanswered<taint::PatchNodeTaint>(stage));
    stage.restart();
    stage.report("p-0", Health::Unhealthy, "Xid 79");
    stage.report("p-1", Health::Unhealthy, "Xid 79");
    stage.run_for(late ? Seconds(90) : minutes(3));
    REQUIRE(our_taint_on(stage.node_named("node-a")));
    stage.node_named("node-a").taints.clear();
    stage.put(stage.node_named("node-a"));
    stage.run_for(minutes(3));
    CHECK(our_taint_on(stage.node_named("node-a")).has_value() == late);
    CHECK((stage.verdict("node-a", Reason::Acknowledged) == nullptr) == late);
  }
}

TEST_CASE("An attribute that all cards of a node share names none of them: another value is no other card") {
  auto stage = remembering_gpus();
  uuid_of_all(stage, "node-a's first name");
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  drop_pod(stage, "train-1", "train-gpu");
  uuid_of_all(stage, "node-a's second name");
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.rule() != nullptr);
  CHECK(stage.reasons("node-a") == "Tainted");
}

TEST_CASE("A restart between another card and the rule's removal does not taint the new card") {
  auto stage = remembering_gpus();
  uuid_of_one(stage, "GPU-1");
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  drop_pod(stage, "train-1", "train-gpu");
  uuid_of_one(stage, "GPU-2");
  for (int i = 0; i < 20; ++i) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<taint::DeleteRule>(action)) {
        stage.answer(action, fail(ErrorKind::Unavailable, "no"));
      } else {
        stage.answer(action);
        if (const auto* state = std::get_if<incident_state::WriteState>(&action))
          stage.put(state_map(state->text, state->ns));
      }
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(stage.rule() != nullptr);
  stage.restart();
  stage.run_for(minutes(2));
  CHECK(stage.rule() == nullptr);
}

}  // namespace dhc::test
