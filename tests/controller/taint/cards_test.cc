// What an operator says by the rule for another device of a bad card.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

namespace {

DeviceKey gpu(const std::string& device) { return DeviceKey::dra(std::string(kDriver), "node-a", device); }

/// gpu-0, which is bad, gpu-1 and gpu-2 are of one card; gpu-3 is another.
Stage bad_card() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  std::vector<k8s::SliceDevice> devices;
  for (const auto& name : kFourGpus) {
    devices.push_back({.name = name, .taints = {}, .counter_set = name == "gpu-3" ? "card-b" : "card-a"});
  }
  publish(stage, std::move(devices));
  stage.run_for(minutes(2));
  return stage;
}

k8s::DeviceTaintRule* card_rule(Stage& stage, const std::string& device) {
  return stage.rule_called(card_rule_name(gpu(device)));
}

void acknowledge_rule(Stage& stage, const std::string& device, const std::string& word = "tested apart") {
  auto rule = *card_rule(stage, device);
  rule.meta.annotations.emplace_back(kAcknowledgeAnnotation, word);
  rule.meta.annotations.sort();
  stage.put(rule);
}

std::ptrdiff_t count_of(const Stage& stage, const std::string& write) {
  return std::ranges::count(stage.writes(), write);
}

}  // namespace

TEST_CASE("An operator's word on the rule of another device of the card lets that one go, and no other") {
  auto stage = bad_card();
  REQUIRE(card_rule(stage, "gpu-1") != nullptr);
  REQUIRE(card_rule(stage, "gpu-2") != nullptr);
  acknowledge_rule(stage, "gpu-1");
  stage.run_for(minutes(1));
  CHECK(card_rule(stage, "gpu-1") == nullptr);
  CHECK(card_rule(stage, "gpu-2") != nullptr);
  CHECK(stage.rule_called(rule_name(gpu("gpu-0"))) != nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.restart();
  stage.run_for(minutes(30));
  CHECK(card_rule(stage, "gpu-1") == nullptr);
  CHECK(count_of(stage, "apply NoSchedule gpu-1") == 1);
  CHECK(count_of(stage, "delete gpu-1") == 1);
}

TEST_CASE("The word that takes a card's rule away is written down before the rule is removed") {
  auto stage = bad_card();
  REQUIRE(card_rule(stage, "gpu-1") != nullptr);
  acknowledge_rule(stage, "gpu-1");
  const auto is_removal = [](const Action& action) { return std::holds_alternative<taint::DeleteRule>(action); };
  bool is_noted = false;
  for (int second = 0; second < 60; ++second) {
    const auto actions = stage.turn();
    if (std::ranges::any_of(actions, is_removal)) {
      CHECK(is_noted);
      break;
    }
    for (const auto& action : actions) {
      stage.answer(action);
      stage.show(action);
    }
    is_noted = is_noted || stage.state_text().contains("letGo");
    REQUIRE(second < 59);
    stage.advance(Seconds(1));
  }
}

TEST_CASE("A word on a card's rule that says no, or on a rule that somebody has changed, takes nothing away") {
  auto stage = bad_card();
  REQUIRE(card_rule(stage, "gpu-1") != nullptr);
  acknowledge_rule(stage, "gpu-1", "false");
  acknowledge_rule(stage, "gpu-2");
  auto changed = *card_rule(stage, "gpu-2");
  changed.taint.effect = "None";
  stage.put(changed);
  stage.run_for(minutes(2));
  CHECK(card_rule(stage, "gpu-1") != nullptr);
  CHECK(card_rule(stage, "gpu-2") != nullptr);
}

TEST_CASE("Of two bad devices of a card neither holds the one that an operator has let go") {
  auto stage = bad_card();
  stage.claim("second-gpu", {"gpu-2"}, "second");
  stage.pod({.name = "second", .health = Health::Unhealthy, .message = "Xid 79", .claim = "second-gpu"});
  stage.run_for(minutes(3));
  REQUIRE(stage.rule_called(rule_name(gpu("gpu-2"))) != nullptr);
  acknowledge_rule(stage, "gpu-1");
  stage.run_for(minutes(1));
  CHECK(card_rule(stage, "gpu-1") == nullptr);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(12));
  CHECK(stage.rule_called(rule_name(gpu("gpu-0"))) == nullptr);
  stage.run_for(minutes(5));
  CHECK(card_rule(stage, "gpu-1") == nullptr);
  CHECK(count_of(stage, "apply NoSchedule gpu-1") == 1);
}

TEST_CASE("A word on a card's rule counts while the driver is away, also for a process that has seen no slice") {
  auto stage = bad_card();
  REQUIRE(card_rule(stage, "gpu-1") != nullptr);
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  stage.restart();
  stage.run_for(Seconds(10));
  acknowledge_rule(stage, "gpu-1");
  stage.run_for(minutes(1));
  CHECK(card_rule(stage, "gpu-1") == nullptr);
  CHECK(card_rule(stage, "gpu-2") != nullptr);
}

TEST_CASE("A card rule's removal that the leader before asked for, and that comes late, lets nothing go") {
  for (const bool late : {true, false}) {
    CAPTURE(late);
    auto stage = bad_card();
    stage.report("train-1", Health::Healthy);
    bool asked = false;
    for (int i = 0; i < 1200 && !asked; ++i) {
      for (const auto& action : stage.turn()) {
        asked = asked || std::holds_alternative<taint::DeleteRule>(action);
        if (asked) continue;
        stage.show(action);
        stage.answer(action);
      }
      stage.advance(Seconds(1));
    }
    REQUIRE(asked);
    stage.restart();
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(late ? Seconds(90) : minutes(3));
    REQUIRE(card_rule(stage, "gpu-1") != nullptr);
    stage.remove(k8s::Kind::DeviceTaintRule, card_rule_name(gpu("gpu-1")));
    stage.run_for(minutes(3));
    CHECK((card_rule(stage, "gpu-1") != nullptr) == late);
  }
}

}  // namespace dhc::test
