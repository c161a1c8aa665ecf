#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tests/controller/hand_over/lemon_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

const std::string kType = "example.com/NodeNeedsRepair";

HandOverRules by_condition(HandOverRules rules = {}) {
  rules.condition = HandOverCondition{.type = kType};
  return rules;
}

Stage told_stage(HandOverRules rules = by_condition()) { return lemon_stage(std::move(rules)); }

/// Our conditions of the node: `Type=Status Reason`, joined.
std::string told(Stage& stage, const std::string& node = "node-a") {
  std::string joined;
  for (const auto& one : stage.node_named(node).kept)
    joined += (joined.empty() ? "" : ", ") + one.type + "=" + one.status + " " + one.reason;
  return joined;
}

/// The writes of conditions, joined.
std::string conditions(const Stage& stage) {
  std::string joined;
  for (const auto& word : stage.writes()) {
    if (word.starts_with("conditions of node ")) joined += (joined.empty() ? "" : ", ") + word.substr(19);
  }
  return joined;
}

const std::string kBad = kType + "=True DeviceHealthHandedOver";
const std::string kWell = kType + "=False DeviceHealthRecovered";

}  // namespace

TEST_CASE("A node with a quarantined device is handed over by its condition, once") {
  auto stage = told_stage();
  stage.run_for(Seconds(59));
  CHECK(told(stage).empty());
  stage.run_for(Seconds(2));
  CHECK(told(stage) == kBad);
  const auto& condition = stage.node_named("node-a").kept.front();
  CHECK(condition.message == "gpu.example.com/node-a/gpu-0: quarantined (policy p)");
  CHECK(condition.last_transition == stage.now().wall - Seconds(1));
  CHECK(stage.verdict("node-a", Reason::HandedOver)->message ==
        "quarantined: condition example.com/NodeNeedsRepair=True of the node stands until the incident ends or is "
        "acknowledged");
  CHECK(stage.verdict("node-a", Reason::HandedOver)->device == "gpu.example.com/node-a/gpu-0");
  CHECK(stage.has_event("node-a", "HandedOver"));
  CHECK(stage.controller().stats().nodes_handed_over == 1);
  stage.run_for(hours(6), minutes(1));
  CHECK(conditions(stage) == "node-a: example.com/NodeNeedsRepair=True");
}

TEST_CASE("A condition that names health is False while the node is handed over") {
  auto stage = told_stage({.condition = HandOverCondition{.type = kType, .is_problem = false}});
  stage.run_for(Seconds(61));
  CHECK(told(stage) == kType + "=False DeviceHealthHandedOver");
  acknowledge(stage);
  stage.run_for(Seconds(1));
  CHECK(told(stage) == kType + "=True DeviceHealthRecovered");
}

TEST_CASE("When an operator vouches for the device the condition says that the node is well, and stays") {
  auto stage = told_stage();
  stage.run_for(minutes(30), minutes(1));
  acknowledge(stage);
  stage.run_for(Seconds(1));
  CHECK(told(stage) == kWell);
  CHECK(stage.node_named("node-a").kept.front().last_transition == stage.now().wall - Seconds(1));
  CHECK(stage.has_event("node-a", "TakingBack"));
  CHECK(stage.controller().stats().nodes_handed_over == 0);
  stage.run_for(hours(6), minutes(1));
  CHECK(conditions(stage) == "node-a: example.com/NodeNeedsRepair=True, node-a: example.com/NodeNeedsRepair=False");
}

TEST_CASE("Incidents count while they are young enough, and only if the last one goes on") {
  auto stage = told_stage(by_condition({.incidents = 2, .within = hours(24), .on_quarantine = false}));
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(61));
  CHECK(told(stage).empty());
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(61));
  CHECK(told(stage) == kBad);
  CHECK(stage.node_named("node-a").kept.front().message ==
        "gpu.example.com/node-a/gpu-0: 2 incidents within 24h (policy p)");
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  CHECK(told(stage) == kWell);
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(61));
  CHECK(told(stage) == kBad);
}

TEST_CASE("Time alone ends no hand-over while the device is bad, and incidents count that opened within each other") {
  auto stage = told_stage(by_condition({.incidents = 2, .within = hours(2), .on_quarantine = false}));
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(61));
  const auto again = [&](Millis after) {
    stage.report("train-1", Health::Healthy);
    stage.run_for(after, Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(61));
  };
  again(hours(2));
  CHECK(told(stage).empty());
  again(hours(1));
  CHECK(told(stage) == kBad);
  stage.run_for(hours(5), minutes(1));
  CHECK(told(stage) == kBad);
}

TEST_CASE("In observe mode nothing is written, and the verdict says what would be") {
  auto stage = told_stage();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(conditions(stage).empty());
  auto by_count = told_stage(by_condition({.incidents = 1}));
  by_count.policy().mode = Mode::Observe;
  by_count.send_policy();
  by_count.run_for(minutes(5), Seconds(10));
  CHECK(conditions(by_count).empty());
  CHECK(by_count.verdict("node-a", Reason::WouldHandOver) != nullptr);
  CHECK(by_count.controller().losses().would_do.at({Deed::HandOver, "p"}) == 1);
}

TEST_CASE("What stands when a policy begins to observe stays, also when nothing asks for it any more") {
  auto stage = told_stage();
  stage.run_for(Seconds(61));
  stage.whole_policy().mode_cap = Mode::Observe;
  stage.send_policy();
  stage.run_for(Seconds(5));
  CHECK(stage.verdict("node-a", Reason::HandedOver) != nullptr);
  acknowledge(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(told(stage) == kBad);
  CHECK(
      stage.verdict("node-a", Reason::HandedOver)->message.ends_with("nothing is written in observe mode, it stands"));
  stage.whole_policy().mode_cap = Mode::Enforce;
  stage.send_policy();
  stage.run_for(Seconds(1));
  CHECK(told(stage) == kWell);
}

TEST_CASE("A condition that no policy names any more is removed, and another one takes its place") {
  auto stage = told_stage();
  stage.run_for(Seconds(61));
  stage.policy().hand_over->condition->type = "Other";
  stage.send_policy();
  stage.run_for(Seconds(1));
  CHECK(told(stage) == "Other=True DeviceHealthHandedOver");
  stage.policy().hand_over.reset();
  stage.send_policy();
  stage.run_for(Seconds(1));
  CHECK(told(stage).empty());
  CHECK(conditions(stage) == "node-a: example.com/NodeNeedsRepair=True, node-a: Other=True, node-a: none of ours");
}

TEST_CASE("A process that starts anew writes nothing again, and ends what the one before has begun") {
  auto stage = told_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.run_for(minutes(2));
  CHECK(told(stage) == kBad);
  stage.restart();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(told(stage) == kBad);
  stage.restart();
  acknowledge(stage);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(told(stage) == kWell);
  CHECK(conditions(stage) == "node-a: example.com/NodeNeedsRepair=True, node-a: example.com/NodeNeedsRepair=False");
}

TEST_CASE("A card that has fallen off the bus keeps its node handed over") {
  auto stage = told_stage();
  stage.run_for(Seconds(61));
  publish(stage, {{"gpu-1", {}, {}}});
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(2), minutes(1));
  CHECK(told(stage) == kBad);
  CHECK(conditions(stage) == "node-a: example.com/NodeNeedsRepair=True");
}

TEST_CASE("A pause and a brake hold a node back, and neither keeps a condition from ending") {
  auto stage = told_stage();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(told(stage).empty());
  // Without a taint there is no quarantine.
  auto by_count = told_stage(by_condition({.incidents = 1}));
  by_count.limits().paused = true;
  by_count.send_policy();
  by_count.run_for(minutes(5), Seconds(10));
  CHECK(told(by_count).empty());
  CHECK(by_count.verdict("node-a", Reason::HandOverHeld) != nullptr);
  by_count.limits().paused = false;
  by_count.send_policy();
  by_count.run_for(Seconds(5));
  CHECK(told(by_count) == kBad);
  by_count.limits().paused = true;
  by_count.send_policy();
  acknowledge(by_count);
  by_count.run_for(Seconds(5));
  CHECK(told(by_count) == kWell);
}

namespace {

/// So many nodes with one bad plugin device of four each, every one a ground.
Stage fleet(int nodes, int bad) {
  Stage stage;
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  stage.policy().hand_over = by_condition({.incidents = 1});
  stage.limits().brake_percent = 100;
  stage.send_policy();
  for (int i = 0; i < nodes; ++i) {
    const auto name = "node-" + std::string(i < 10 ? "0" : "") + std::to_string(i);
    stage.node(name, 4, i < bad ? 3 : 4);
    if (i < bad)
      stage.pod({.name = "p-" + std::to_string(i), .node = name, .device = "gpu-0", .health = Health::Unhealthy});
  }
  return stage;
}

int handed_over(Stage& stage, int nodes) {
  int count = 0;
  for (int i = 0; i < nodes; ++i)
    count += told(stage, "node-" + std::string(i < 10 ? "0" : "") + std::to_string(i)) == kBad ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("No more nodes are handed over at once than the cap allows of those with such devices") {
  auto stage = fleet(40, 5);
  stage.node("other", 0);
  stage.hold_caps();
  stage.limits().cap_nodes_handed_over = {.percent = 5, .at_least = 1};
  stage.send_policy();
  stage.run_for(minutes(3));
  CHECK(handed_over(stage, 40) == 2);
  CHECK(stage.verdict("node-04", Reason::HandOverHeld)->message ==
        "2 of 40 nodes with devices of example.com/gpu are handed over or are to be, and caps.nodesHandedOver allows "
        "5% and at "
        "least 1: repair those, or raise it");
  acknowledge(stage, "node-00");
  stage.run_for(Seconds(5));
  CHECK(told(stage, "node-00") == kWell);
  CHECK(handed_over(stage, 40) == 2);
}

TEST_CASE("A node whose hand-over the watch has not shown yet keeps its place under the cap") {
  auto stage = fleet(20, 6);
  for (int i = 1; i < 5; ++i) stage.remove_pod("p-" + std::to_string(i));
  stage.report("p-0", Health::Healthy);
  stage.hold_caps();
  stage.limits().cap_nodes_handed_over = {.percent = 5, .at_least = 1};
  stage.send_policy();
  stage.settle();
  stage.run_for(Seconds(10));
  stage.report("p-0", Health::Unhealthy, "Xid 79");
  std::set<std::string> written;
  // The kubelet writes to the node, and the watch is behind: it shows that, and not yet what was ours.
  const auto in_lag = [&](Millis time) {
    for (Millis at{0}; at < time; at += Seconds(1)) {
      stage.advance(Seconds(1));
      stage.put(stage.node_named("node-05"));
      for (const auto& action : stage.turn()) {
        const auto* ours = std::get_if<hand_over::ApplyNodeConditions>(&action);
        if (ours != nullptr) written.insert(ours->node);
        stage.answer(action);
        if (ours == nullptr) stage.show(action);
      }
    }
  };
  in_lag(Seconds(65));
  CHECK(written == std::set<std::string>{"node-05"});
  const auto* held = stage.verdict("node-00", Reason::HandOverHeld);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with("1 of 20 nodes"));
  CHECK(held->next_at);
}

TEST_CASE("At most ten nodes a minute are written") {
  auto stage = fleet(12, 12);
  stage.run_for(Seconds(60));
  CHECK(handed_over(stage, 12) == 10);
  CHECK(stage.verdict("node-11", Reason::HandOverHeld)->message ==
        "10 nodes a minute are handed over or taken back, and they are used up");
  stage.run_for(Seconds(5));
  CHECK(handed_over(stage, 12) == 10);
  stage.run_for(Seconds(1));
  CHECK(handed_over(stage, 12) == 11);
}

TEST_CASE("A node that others are removing already is not handed over") {
  auto stage = fleet(1, 1);
  auto node = stage.node_named("node-00");
  node.lifecycle = "DrainInProgress";
  stage.put(node);
  stage.run_for(minutes(3));
  CHECK(handed_over(stage, 1) == 0);
  CHECK(stage.verdict("node-00", Reason::HandOverHeld)->message ==
        "the node is being removed: has condition DrainInProgress");
  node = stage.node_named("node-00");
  node.lifecycle.clear();
  stage.put(node);
  stage.run_for(Seconds(5));
  CHECK(handed_over(stage, 1) == 1);
}

TEST_CASE(
    "A device of which the kubelet says Unknown just now is no ground for a new condition until it is Unhealthy "
    "again") {
  auto stage = told_stage();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(Seconds(61));
  REQUIRE(stage.verdict("node-a", Reason::WouldHandOver) != nullptr);
  stage.report("train-1", Health::Unknown);
  stage.settle();
  stage.policy().mode = Mode::Enforce;
  stage.send_policy();
  stage.run_for(Seconds(5));
  CHECK(told(stage).empty());
  REQUIRE(stage.verdict("node-a", Reason::HandOverHeld) != nullptr);
  CHECK(stage.verdict("node-a", Reason::HandOverHeld)->message == "the device is Unknown just now");
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(2));
  CHECK(told(stage) == kBad);
}

TEST_CASE("A brake holds every node of its scope") {
  auto stage = fleet(4, 4);
  stage.limits().brake_percent = 10;
  stage.limits().brake_at_least = 3;
  stage.send_policy();
  stage.run_for(minutes(3));
  CHECK(handed_over(stage, 4) == 0);
}

/// What a webhook that takes conditions of kType out of each write lets pass.
void show_but_ours(Stage& stage, const hand_over::ApplyNodeConditions& apply) {
  auto node = stage.node_named(apply.node);
  auto shown = apply.conditions;
  std::erase_if(shown, [](const auto& one) { return one.type == kType; });
  if (shown.empty()) return;
  std::ranges::copy_if(node.kept, std::back_inserter(shown), [](const auto& one) { return one.type == kType; });
  node.kept = std::move(shown);
  stage.put(node);
}

/// The writes of conditions in that time, in which the kubelet writes to the node every ten seconds. All end so, and
/// none of kType is there afterwards.
int writes_that_do_not_stay(Stage& stage, Millis time, const Status& end) {
  int sent = 0;
  for (Millis at{0}; at < time; at += Seconds(1)) {
    stage.advance(Seconds(1));
    if (at.count() % 10'000 == 0) stage.put(stage.node_named("node-a"));
    for (int round = 0; round < 4; ++round) {
      for (const auto& action : stage.turn()) {
        const auto* ours = std::get_if<hand_over::ApplyNodeConditions>(&action);
        sent += ours != nullptr ? 1 : 0;
        stage.answer(action, ours != nullptr ? end : Status());
        if (ours == nullptr) {
          stage.show(action);
        } else if (end) {
          show_but_ours(stage, *ours);
        }
      }
    }
  }
  return sent;
}

TEST_CASE("A condition of the same type that another writes is left to him, and not asked for again at once") {
  auto stage = told_stage();
  stage.run_for(Seconds(59));
  const auto conflict = fail(ErrorKind::Contested, "conflict with \"npd\": .status.conditions");
  CHECK(writes_that_do_not_stay(stage, minutes(1), conflict) == 1);
  CHECK(stage.verdict("node-a", Reason::HandOverHeld)->message.contains("conflict with \"npd\""));
}

TEST_CASE("A condition that a webhook takes away is written ever more rarely, and the node says so") {
  auto stage = told_stage();
  stage.run_for(Seconds(59));
  CHECK(writes_that_do_not_stay(stage, minutes(10), {}) <= 12);
  const auto* said = stage.verdict("node-a", Reason::HandOverHeld);
  REQUIRE(said != nullptr);
  CHECK(said->message.contains("an admission webhook or another client takes it away"));
  REQUIRE(said->next_at);
  const auto in_an_hour = writes_that_do_not_stay(stage, hours(1), {});
  CHECK(in_an_hour <= 7);
  CHECK(in_an_hour >= 5);
  // What is to be said from then on waits for nothing.
  stage.run_for(minutes(11), Seconds(10));
  REQUIRE(told(stage) == kBad);
  acknowledge(stage);
  stage.run_for(Seconds(5));
  CHECK(told(stage) == kWell);
}

TEST_CASE("What a webhook takes away holds no other condition of the node back") {
  auto stage = told_stage();
  const std::string other = "example.com/FabricNeedsRepair";
  auto& policies = stage.whole_policy().policies;
  policies.push_back(policies.front());
  policies[0].match.drivers = {std::string(kDriver)};
  policies[1].name = "q";
  policies[1].match.resources = {"example.com/gpu"};
  policies[1].hand_over->incidents = 1;
  policies[1].hand_over->condition->type = other;
  policies[1].mode = Mode::Observe;
  stage.send_policy();
  stage.pod({.name = "web-1", .device = "GPU-7", .health = Health::Unhealthy});
  writes_that_do_not_stay(stage, hours(1), {});
  REQUIRE(stage.verdict("node-a", Reason::HandOverHeld)->message.contains("takes it away"));
  REQUIRE(stage.verdict("node-a", Reason::WouldHandOver) != nullptr);
  REQUIRE(told(stage).empty());
  policies[1].mode = Mode::Enforce;
  stage.send_policy();
  writes_that_do_not_stay(stage, Seconds(70), {});
  CHECK(told(stage) == other + "=True DeviceHealthHandedOver");
}

TEST_CASE("Where another takes each word of recovery away, the removal after the policy is gone waits for nothing") {
  auto stage = told_stage();
  stage.run_for(Seconds(61));
  REQUIRE(told(stage) == kBad);
  acknowledge(stage);
  CHECK(writes_that_do_not_stay(stage, minutes(30), {}) > 2);
  REQUIRE(told(stage) == kBad);
  stage.policy().hand_over.reset();
  stage.send_policy();
  stage.run_for(Seconds(5));
  CHECK(told(stage).empty());
}

}  // namespace dhc::test
