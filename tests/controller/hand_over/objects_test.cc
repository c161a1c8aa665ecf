#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/controller/hand_over/lemon_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// One object a node, named as it.
HandOverResource remediation() {
  return {.api_version = "remediation.example.com/v1",
          .kind = "Remediation",
          .ns = "repair",
          .name = "{node}",
          .text = R"({"apiVersion":"remediation.example.com/v1","kind":"Remediation",)"
                  R"("metadata":{"name":"{node}","namespace":"repair"},"spec":{"node":"{node}"}})"};
}

/// One object a device.
HandOverResource reset() {
  return {.api_version = "reset.example.com/v1",
          .kind = "Reset",
          .ns = {},
          .name = "{node}-{device}",
          .text = R"({"apiVersion":"reset.example.com/v1","kind":"Reset","metadata":{"name":"{node}-{device}"},)"
                  R"("spec":{"node":"{node}","device":"{device}","driver":"{driver}","pool":"{pool}"}})",
          .per_device = true};
}

HandOverRules by_object(HandOverResource resource, HandOverRules rules = {}) {
  rules.resource = std::move(resource);
  return rules;
}

/// The state is kept.
Stage object_stage(HandOverRules rules = by_object(remediation())) {
  auto stage = lemon_stage(std::move(rules));
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  return stage;
}

/// What was made and deleted, joined.
std::string orders(const Stage& stage) {
  std::string joined;
  for (const auto& word : stage.writes()) {
    if (word.ends_with(": make") || word.ends_with(": delete")) joined += (joined.empty() ? "" : ", ") + word;
  }
  return joined;
}

std::string standing(Stage& stage) {
  std::string joined;
  for (const auto& [name, text] : stage.handed()) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

std::string held(Stage& stage, const std::string& node = "node-a") {
  const auto* verdict = stage.verdict(node, Reason::HandOverHeld);
  return verdict == nullptr ? std::string() : verdict->message;
}

/// No policy asks for a hand-over for ten seconds, in which what was made is deleted.
void take_back_and_ask_again(Stage& stage) {
  const auto rules = stage.policy().hand_over;
  stage.policy().hand_over.reset();
  stage.send_policy();
  stage.run_for(Seconds(10));
  REQUIRE(standing(stage).empty());
  stage.policy().hand_over = rules;
  stage.send_policy();
}

/// From now on the creation of objects gets this answer; `stands`: it is carried out all the same.
void answer_with(Stage& stage, ErrorKind kind, const std::string& words, int& asked) {
  stage.answer_objects([kind, words, &asked](const hand_over::MakeObject&) -> Status {
    ++asked;
    return fail(kind, words);
  });
}

}  // namespace

TEST_CASE("A node with a quarantined device is handed over by an object, made once and deleted with the incident") {
  auto stage = object_stage();
  stage.run_for(Seconds(59));
  CHECK(standing(stage).empty());
  stage.run_for(Seconds(8));
  REQUIRE(standing(stage) == "Remediation repair/node-a");
  const auto made = nlohmann::json::parse(stage.handed().begin()->second);
  CHECK(made["spec"]["node"] == "node-a");
  CHECK(made["metadata"]["labels"][std::string(kManagedByLabel)] == kManagedBy);
  CHECK(made["metadata"]["annotations"][std::string(kIncidentAnnotation)].get<std::string>().size() == 16);
  CHECK(made["metadata"]["annotations"][std::string(kPolicyAnnotation)] == "p");
  CHECK(stage.verdict("node-a", Reason::HandedOver)->message ==
        "quarantined: Remediation repair/node-a was made; it stands until the incident ends or is acknowledged");
  CHECK(stage.verdict("node-a", Reason::HandedOver)->device == "gpu.example.com/node-a/gpu-0");
  CHECK(stage.has_event("node-a", "HandedOver"));
  CHECK(stage.controller().stats().nodes_handed_over == 1);
  stage.run_for(hours(6), minutes(1));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
  acknowledge(stage);
  stage.run_for(Seconds(5));
  CHECK(standing(stage).empty());
  CHECK(stage.has_event("node-a", "TakingBack"));
  CHECK(stage.controller().stats().nodes_handed_over == 0);
  stage.run_for(hours(2), minutes(1));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make, Remediation node-a for node node-a: delete");
}

TEST_CASE("Nothing is made before it is written down") {
  auto stage = object_stage();
  stage.run_for(Seconds(59));
  // Every write of the state fails from now on.
  for (int second = 0; second < 120; ++second) {
    stage.advance(Seconds(1));
    for (const auto& action : stage.turn()) {
      const bool is_state = std::holds_alternative<incident_state::WriteState>(action);
      stage.answer(action, is_state ? fail(ErrorKind::Forbidden, "no") : Status());
      if (!is_state) stage.show(action);
    }
  }
  CHECK(orders(stage).empty());
  CHECK(stage.verdict("node-a", Reason::HandingOver)->message.ends_with("is written down, and made then"));
  stage.run_for(minutes(12), Seconds(10));
  CHECK(standing(stage) == "Remediation repair/node-a");
}

TEST_CASE("Each device that is a ground has an object of its own, if they are per device") {
  auto stage = object_stage(by_object(reset()));
  stage.claim("other-gpu", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .health = Health::Unhealthy, .claim = "other-gpu"});
  stage.run_for(Seconds(70));
  REQUIRE(standing(stage) == "Reset node-a-gpu-0, Reset node-a-gpu-1");
  const auto made = nlohmann::json::parse(stage.handed().begin()->second);
  CHECK(made["spec"].dump() == R"({"device":"gpu-0","driver":"gpu.example.com","node":"node-a","pool":"node-a"})");
  CHECK(stage.controller().stats().nodes_handed_over == 1);
}

TEST_CASE("Two devices of one node have one object, if it is per node, until both have recovered") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1}));
  stage.run_for(Seconds(70));
  CHECK(standing(stage) == "Remediation repair/node-a");
  stage.claim("other-gpu", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .health = Health::Unhealthy, .claim = "other-gpu"});
  stage.run_for(minutes(3), Seconds(5));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
  // The first one recovers: what it stands for goes on.
  publish(stage, {{"gpu-1", {}, {}}});
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(3), Seconds(5));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
  acknowledge(stage);
  stage.run_for(Seconds(10));
  CHECK(standing(stage).empty());
}

TEST_CASE("One of two devices that recovers does not end what stands for both, although it was made for that one") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1, .on_quarantine = false}));
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(70));
  stage.claim("other-gpu", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .health = Health::Unhealthy, .claim = "other-gpu"});
  stage.run_for(minutes(2), Seconds(5));
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(15), Seconds(10));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
  stage.report("train-2", Health::Healthy);
  stage.run_for(minutes(15), Seconds(10));
  CHECK(standing(stage).empty());
}

TEST_CASE("What could not be deleted after an incident is not taken for what the next one asks for") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1, .on_quarantine = false}));
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(70));
  const auto first = stage.handed().begin()->second;
  stage.report("train-1", Health::Healthy);
  const auto refuse = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      stage.advance(Seconds(1));
      for (const auto& action : stage.turn()) {
        const bool is_removal = std::holds_alternative<hand_over::RemoveObject>(action);
        stage.answer(action, is_removal ? fail(ErrorKind::Forbidden, "no") : Status());
        if (!is_removal) stage.show(action);
      }
    }
  };
  refuse(11 * 60);
  REQUIRE(stage.verdict("node-a", Reason::TakingBack) != nullptr);
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  refuse(70);
  CHECK(held(stage) == "Remediation repair/node-a of an incident before is taken back first");
  CHECK(stage.handed().begin()->second == first);
  stage.run_for(minutes(12), Seconds(5));
  REQUIRE(standing(stage) == "Remediation repair/node-a");
  CHECK(stage.handed().begin()->second != first);
}

TEST_CASE("An order that is taken back by the configuration is not given again for the same incident") {
  auto stage = object_stage();
  stage.run_for(Seconds(70));
  take_back_and_ask_again(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(standing(stage).empty());
  CHECK(held(stage) == "Remediation repair/node-a was made for this incident and is over: none is made twice for one");
}

TEST_CASE("Another device that is bad is handed over although what was made for the first one is over") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1}));
  stage.run_for(Seconds(70));
  take_back_and_ask_again(stage);
  stage.claim("other-gpu", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .health = Health::Unhealthy, .claim = "other-gpu"});
  stage.run_for(minutes(3), Seconds(5));
  CHECK(standing(stage) == "Remediation repair/node-a");
}

TEST_CASE("A clock that is set back gives no second order for the same incident") {
  bool is_new_process = false;
  SUBCASE("in one process") {}
  SUBCASE("by the next one") { is_new_process = true; }
  auto kept = reset();
  kept.keeps = true;
  kept.name = "{node}-{incident}";
  auto stage = object_stage(by_object(kept));
  stage.run_for(Seconds(70));
  REQUIRE(stage.handed().size() == 1);
  stage.set_clock(-hours(2));
  if (is_new_process) stage.restart();
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.handed().size() == 1);
  stage.restart();
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.handed().size() == 1);
}

TEST_CASE("Replicas of one card are one order, if it is per device") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  auto rules = reset();
  rules.name = "{node}-{incident}";
  rules.text = R"({"apiVersion":"reset.example.com/v1","kind":"Reset","metadata":{"name":"{node}-{incident}"},)"
               R"("spec":{"uuids":["{identity}"]}})";
  stage.policy().hand_over = by_object(rules, {.incidents = 1});
  stage.send_policy();
  stage.node("node-a", 8, 6);
  for (const auto* replica : {"0", "1"}) {
    stage.pod({.name = std::string("p-") + replica,
               .node = "node-a",
               .device = std::string("GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d::") + replica,
               .health = Health::Unhealthy});
  }
  stage.run_for(minutes(3), Seconds(5));
  CHECK(stage.handed().size() == 1);
  CHECK(held(stage).empty());
}

TEST_CASE("What is to be kept is left when the incident is over, and a later incident is told by another object") {
  auto kept = reset();
  kept.keeps = true;
  kept.name = "{node}-{incident}";
  auto stage = object_stage(by_object(kept, {.incidents = 1, .on_quarantine = false}));
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(70));
  REQUIRE(stage.handed().size() == 1);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  CHECK(stage.handed().size() == 1);
  CHECK(stage.controller().stats().nodes_handed_over == 0);
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  CHECK(stage.handed().size() == 2);
}

TEST_CASE("An object that a person has deleted is not made again for the same incident, also by the next process") {
  auto stage = object_stage();
  stage.run_for(Seconds(70));
  stage.handed().clear();
  stage.run_for(hours(1), minutes(1));
  stage.restart();
  stage.run_for(hours(1), minutes(1));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
}

TEST_CASE("A process that starts anew makes nothing twice, and deletes what the one before has made") {
  auto stage = object_stage();
  stage.run_for(minutes(2));
  stage.restart();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
  CHECK(stage.controller().stats().nodes_handed_over == 1);
  stage.restart();
  acknowledge(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(standing(stage).empty());
  CHECK(orders(stage) == "Remediation node-a for node node-a: make, Remediation node-a for node node-a: delete");
}

TEST_CASE("A process that dies between writing an object down and hearing of it asks again") {
  auto stage = object_stage();
  for (int second = 0; second < 120 && orders(stage).empty(); ++second) {
    stage.advance(Seconds(1));
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<hand_over::MakeObject>(action)) continue;
      stage.answer(action);
      stage.show(action);
    }
  }
  REQUIRE(orders(stage) == "Remediation node-a for node node-a: make");
  stage.restart();
  stage.run_for(Seconds(10));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make, Remediation node-a for node node-a: make");
  CHECK(standing(stage) == "Remediation repair/node-a");
}

TEST_CASE(
    "What was asked for without an answer is looked for until it is there, and deleted only when it can come no more") {
  int asked = 0;
  auto stage = object_stage();
  answer_with(stage, ErrorKind::TimedOut, "no answer in 30 s", asked);
  stage.run_for(Seconds(70));
  CHECK(asked == 1);
  CHECK(stage.controller().stats().nodes_handed_over == 1);
  acknowledge(stage);
  stage.run_for(Seconds(60));
  CHECK(!orders(stage).contains("delete"));
  CHECK(stage.verdict("node-a", Reason::TakingBack)
            ->message.ends_with("not yet: a request without an answer may still be carried out"));
  stage.run_for(Seconds(90));
  CHECK(orders(stage).ends_with("delete"));
}

TEST_CASE("What a process before may have asked for is deleted only when it can come no more") {
  auto stage = object_stage();
  for (int second = 0; second < 120 && orders(stage).empty(); ++second) {
    stage.advance(Seconds(1));
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<hand_over::MakeObject>(action)) continue;
      stage.answer(action);
      stage.show(action);
    }
  }
  stage.restart();
  acknowledge(stage);
  stage.run_for(Seconds(60));
  CHECK(!orders(stage).contains("delete"));
  REQUIRE(stage.verdict("node-a", Reason::TakingBack) != nullptr);
  CHECK(stage.verdict("node-a", Reason::TakingBack)->message.ends_with("may still be carried out"));
  stage.run_for(Seconds(90));
  CHECK(orders(stage).ends_with("delete"));
}

TEST_CASE("What was never asked for, or surely refused, is not deleted") {
  int asked = 0;
  auto stage = object_stage();
  answer_with(stage, ErrorKind::Forbidden, "gpuresets is forbidden", asked);
  stage.run_for(Seconds(70));
  CHECK(asked == 1);
  CHECK(held(stage).contains("gpuresets is forbidden"));
  CHECK(stage.controller().stats().nodes_handed_over == 0);
  acknowledge(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(orders(stage) == "Remediation node-a for node node-a: make");
}

TEST_CASE("A kind that is not served is asked for ever more rarely, and made when it is") {
  int asked = 0;
  auto stage = object_stage();
  answer_with(stage, ErrorKind::Invalid, "kind Remediation is not served", asked);
  stage.run_for(hours(1), Seconds(10));
  CHECK(asked > 3);
  CHECK(asked < 12);
  stage.answer_objects([](const hand_over::MakeObject&) { return Status(); });
  stage.run_for(minutes(11), Seconds(10));
  CHECK(standing(stage) == "Remediation repair/node-a");
}

TEST_CASE("In observe mode no object is made, and the verdict says which would be") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1}));
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(orders(stage).empty());
  REQUIRE(stage.verdict("node-a", Reason::WouldHandOver) != nullptr);
  CHECK(stage.verdict("node-a", Reason::WouldHandOver)->message ==
        "quarantined: an enforcing policy would make Remediation repair/node-a");
  CHECK(stage.controller().losses().would_do.at({Deed::HandOver, "p"}) == 1);
}

TEST_CASE("What stands when a policy begins to observe stays, and ends when it enforces again") {
  auto stage = object_stage();
  stage.run_for(Seconds(70));
  stage.whole_policy().mode_cap = Mode::Observe;
  stage.send_policy();
  acknowledge(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(standing(stage) == "Remediation repair/node-a");
  stage.whole_policy().mode_cap = Mode::Enforce;
  stage.send_policy();
  stage.run_for(Seconds(5));
  CHECK(standing(stage).empty());
}

TEST_CASE("A pause holds the making of an object and not its end") {
  auto stage = object_stage(by_object(remediation(), {.incidents = 1}));
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(orders(stage).empty());
  CHECK(!held(stage).empty());
  stage.limits().paused = false;
  stage.send_policy();
  stage.run_for(Seconds(10));
  CHECK(standing(stage) == "Remediation repair/node-a");
  stage.limits().paused = true;
  stage.send_policy();
  acknowledge(stage);
  stage.run_for(Seconds(10));
  CHECK(standing(stage).empty());
}

TEST_CASE("A pause that comes after it was written down holds it as well") {
  auto stage = object_stage();
  for (int second = 0; second < 120; ++second) {
    stage.advance(Seconds(1));
    for (const auto& action : stage.turn()) {
      stage.answer(action);
      stage.show(action);
    }
    const auto* verdict = stage.verdict("node-a", Reason::HandingOver);
    if (verdict != nullptr && verdict->message.contains("written down")) break;
  }
  REQUIRE(stage.verdict("node-a", Reason::HandingOver) != nullptr);
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(orders(stage).empty());
}

TEST_CASE("A resource that no policy names any more is deleted, and what takes its place is made") {
  auto stage = object_stage();
  stage.run_for(Seconds(70));
  stage.policy().hand_over = by_object(reset());
  stage.send_policy();
  stage.run_for(Seconds(10));
  CHECK(standing(stage) == "Reset node-a-gpu-0");
  stage.policy().hand_over.reset();
  stage.send_policy();
  stage.run_for(Seconds(10));
  CHECK(standing(stage).empty());
}

TEST_CASE("An object stays while its node is gone: that is how nodes are replaced") {
  auto stage = object_stage();
  stage.run_for(Seconds(70));
  stage.remove(k8s::Kind::Node, "node-a");
  stage.run_for(minutes(10), Seconds(10));
  CHECK(standing(stage) == "Remediation repair/node-a");
}

TEST_CASE("A placeholder of which nothing is known holds the object, with what is missing") {
  auto rules = reset();
  rules.name = "{node}-{incident}";
  rules.text = R"({"apiVersion":"reset.example.com/v1","kind":"Reset","metadata":{"name":"{node}-{incident}"},)"
               R"("spec":{"uuids":["{identity}"]}})";
  auto stage = object_stage(by_object(rules));
  stage.run_for(minutes(3), Seconds(5));
  CHECK(orders(stage).empty());
  CHECK(held(stage) ==
        "handOver.resource names {identity}, and no hardware identity of the device is known: see "
        "recover.identityAttribute");
}

TEST_CASE("The identity of a partition is its card's") {
  auto rules = remediation();
  rules.per_device = true;
  rules.name = "{node}-{incident}";
  rules.text = R"({"apiVersion":"reset.example.com/v1","kind":"Reset","metadata":{"name":"{node}-{incident}"},)"
               R"("spec":{"uuids":["{identity}"]}})";
  auto stage = object_stage(by_object(rules));
  publish(stage,
          {{.name = "gpu-0", .taints = {}, .attributes = {{"gpu.nvidia.com/parentUUID", "GPU-a"}, {"uuid", "M"}}},
           {.name = "gpu-1", .taints = {}, .attributes = {{"gpu.nvidia.com/parentUUID", "GPU-b"}}}});
  stage.run_for(minutes(3), Seconds(5));
  REQUIRE(stage.handed().size() == 1);
  CHECK(nlohmann::json::parse(stage.handed().begin()->second)["spec"]["uuids"][0] == "GPU-a");
}

TEST_CASE("A condition and an object of one policy are both told, and the node counts once") {
  auto rules = by_object(remediation());
  rules.condition = HandOverCondition{.type = "example.com/NodeNeedsRepair"};
  auto stage = object_stage(rules);
  stage.hold_caps();
  stage.limits().cap_nodes_handed_over = {.percent = 0, .at_least = 1};
  stage.send_policy();
  stage.run_for(Seconds(70));
  CHECK(standing(stage) == "Remediation repair/node-a");
  CHECK(stage.node_named("node-a").kept.size() == 1);
  CHECK(stage.controller().stats().nodes_handed_over == 1);
}

namespace {

/// So many nodes with one bad plugin device of four each, every one a ground.
Stage object_fleet(int nodes) {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  stage.policy().hand_over = by_object(remediation(), {.incidents = 1});
  stage.limits().brake_percent = 100;
  stage.send_policy();
  for (int i = 0; i < nodes; ++i) {
    const auto name = "node-" + std::string(i < 10 ? "0" : "") + std::to_string(i);
    stage.node(name, 4, 3);
    stage.pod({.name = "p-" + std::to_string(i), .node = name, .device = "gpu-0", .health = Health::Unhealthy});
  }
  return stage;
}

}  // namespace

TEST_CASE("That an object was made, and that it is gone, is written down although nothing else has changed") {
  auto stage = object_fleet(1);
  stage.run_for(Seconds(80));
  CHECK(stage.state_text().contains(R"("phase":"Made")"));
  acknowledge(stage, "node-00");
  stage.run_for(Seconds(30));
  CHECK(stage.state_text().contains(R"("phase":"Over")"));
}

TEST_CASE("No more nodes are handed over by objects at once than the cap allows") {
  auto stage = object_fleet(40);
  stage.hold_caps();
  stage.limits().cap_nodes_handed_over = {.percent = 5, .at_least = 1};
  stage.send_policy();
  stage.run_for(minutes(3));
  CHECK(stage.handed().size() == 2);
  CHECK(held(stage, "node-04") ==
        "2 of 40 nodes with devices of example.com/gpu are handed over or are to be, and caps.nodesHandedOver allows "
        "5% and at "
        "least 1: repair those, or raise it");
  acknowledge(stage, "node-00");
  stage.run_for(Seconds(20));
  CHECK(stage.handed().size() == 2);
  CHECK(!stage.handed().contains("Remediation repair/node-00"));
}

TEST_CASE("What was refused while it could not be made does not break the cap when it can, also after a restart") {
  int asked = 0;
  bool is_new_process = false;
  SUBCASE("in one process") {}
  SUBCASE("by the next one") { is_new_process = true; }
  auto stage = object_fleet(40);
  stage.hold_caps();
  stage.limits().cap_nodes_handed_over = {.percent = 5, .at_least = 1};
  stage.send_policy();
  answer_with(stage, ErrorKind::Forbidden, "no", asked);
  stage.run_for(minutes(30), Seconds(10));
  CHECK(asked > 2);
  CHECK(stage.controller().stats().nodes_handed_over == 0);
  if (is_new_process) stage.restart();
  stage.answer_objects([](const hand_over::MakeObject&) { return Status(); });
  stage.run_for(minutes(30), Seconds(10));
  CHECK(stage.handed().size() == 2);
}

TEST_CASE("At most ten objects a minute are made") {
  auto stage = object_fleet(14);
  int after_minute = 0;
  stage.run_for(Seconds(66));
  after_minute = static_cast<int>(stage.handed().size());
  CHECK(after_minute >= 8);
  CHECK(after_minute <= 11);
  stage.run_for(minutes(2));
  CHECK(stage.handed().size() == 14);
}

}  // namespace dhc::test
