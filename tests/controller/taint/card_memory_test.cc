// A physical card breaks, whichever of its devices does: what is remembered of them counts together.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/cluster_status.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test::card_memory_test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

const std::vector<std::string> kCardA = {"mig-0", "mig-1", "mig-2", "mig-3", "mig-4", "mig-5", "mig-6"};
const std::vector<std::string> kCardB = {"other-0", "other-1", "other-2"};

enum class Tells { Counters, Parent };

std::vector<k8s::SliceDevice> partitions(const std::vector<std::string>& names, const std::string& card, Tells tells) {
  std::vector<k8s::SliceDevice> devices;
  for (const auto& name : names) {
    k8s::SliceDevice device{.name = name, .taints = {}};
    if (tells == Tells::Counters) {
      device.counter_set = card;
    } else {
      device.attributes = {{"gpu.example.com/parentUUID", "GPU-" + card}};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

void publish_cards(Stage& stage, Tells tells, const std::vector<std::string>& of_a = kCardA,
                   const std::string& a = "a") {
  auto devices = partitions(of_a, a, tells);
  for (auto& device : partitions(kCardB, "b", tells)) devices.push_back(std::move(device));
  publish(stage, std::move(devices));
}

void hold(Stage& stage, const std::string& device) {
  stage.claim("claim-" + device, {device}, "pod-" + device);
  stage.pod({.name = "pod-" + device, .owner = "Job/" + device, .claim = "claim-" + device});
}

/// Two cards of several devices each, all held and well; the controller remembers.
Stage two_cards(Tells tells, double quarantine_above = 2.5) {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{};
  stage.policy().recover = {.hold = hours(1), .half_life = hours(720), .quarantine_above = quarantine_above};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_cards(stage, tells);
  for (const auto* card : {&kCardA, &kCardB}) {
    for (const auto& device : *card) hold(stage, device);
  }
  stage.run_for(Seconds(10));
  return stage;
}

void go_bad(Stage& stage, const std::vector<std::string>& devices) {
  for (const auto& device : devices) stage.report("pod-" + device, Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
}

void go_well(Stage& stage, const std::vector<std::string>& devices) {
  for (const auto& device : devices) stage.report("pod-" + device, Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
}

void break_for_a_while(Stage& stage, const std::vector<std::string>& devices) {
  go_bad(stage, devices);
  go_well(stage, devices);
}

DeviceKey device_key(const std::string& device) { return DeviceKey::dra(std::string(kDriver), "node-a", device); }

std::optional<DeviceRecord> record_of(const Stage& stage, const std::string& device) {
  const auto content = parse_state(stage.state_text());
  for (const auto& record : content.records) {
    if (record.key.device == device) return record;
  }
  return std::nullopt;
}

IncidentPhase phase_of(const Stage& stage, const std::string& device) {
  const auto record = record_of(stage, device);
  return record ? record->incident.phase() : IncidentPhase::None;
}

double penalty_in_state(const Stage& stage, const std::string& device) {
  const auto record = record_of(stage, device);
  return record ? record->past.penalty : 0;
}

void acknowledge_rule(Stage& stage, const std::string& device) {
  auto* found = stage.rule_called(rule_name(device_key(device)));
  REQUIRE(found != nullptr);
  auto rule = *found;
  rule.meta.annotations.emplace_back(kAcknowledgeAnnotation, "fan replaced");
  rule.meta.annotations.sort();
  stage.put(rule);
  stage.run_for(Seconds(30));
}

}  // namespace

TEST_CASE("A card whose partitions break in turn is quarantined as a device that breaks as often is") {
  for (const auto tells : {Tells::Counters, Tells::Parent}) {
    for (const bool restarts : {false, true}) {
      CAPTURE(tells == Tells::Parent);
      CAPTURE(restarts);
      auto in_turn = two_cards(tells);
      auto alone = two_cards(tells);
      for (const std::string device : {"mig-0", "mig-1"}) {
        break_for_a_while(in_turn, {device});
        break_for_a_while(alone, {"mig-2"});
        if (restarts) in_turn.restart();
        CHECK(phase_of(in_turn, device) == IncidentPhase::Ended);
      }
      go_bad(in_turn, {"mig-2"});
      go_bad(alone, {"mig-2"});
      CHECK(phase_of(in_turn, "mig-2") == IncidentPhase::Quarantined);
      CHECK(phase_of(alone, "mig-2") == IncidentPhase::Quarantined);
      const auto* said = in_turn.verdict("node-a", Reason::Quarantined);
      REQUIRE(said != nullptr);
      CHECK(said->message.starts_with("1 incidents, penalty 1.00 (3.00 with its card's other devices): held"));
      said = alone.verdict("node-a", Reason::Quarantined);
      REQUIRE(said != nullptr);
      CHECK(said->message.starts_with("3 incidents, penalty 3.00: held"));
    }
  }
}

TEST_CASE("What breaks on another card of the node counts for that card alone") {
  for (const auto tells : {Tells::Counters, Tells::Parent}) {
    auto stage = two_cards(tells);
    for (const std::string device : {"mig-0", "other-0", "other-1"}) break_for_a_while(stage, {device});
    go_bad(stage, {"mig-1"});
    CHECK(phase_of(stage, "mig-1") == IncidentPhase::Open);
    go_bad(stage, {"other-2"});
    CHECK(phase_of(stage, "other-2") == IncidentPhase::Quarantined);
  }
}

TEST_CASE("A fault that takes all devices of a card counts once for the card, and each time that it comes back") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    auto stage = two_cards(Tells::Counters);
    stage.policy().taint->partitions = false;
    stage.send_policy();
    break_for_a_while(stage, kCardA);
    if (restarts) stage.restart();
    go_bad(stage, {"mig-3"});
    CHECK(phase_of(stage, "mig-3") == IncidentPhase::Open);
    go_well(stage, {"mig-3"});
    if (restarts) stage.restart();
    // The third time: by the device that is called bad first. The others of the same fault are not quarantined with it.
    go_bad(stage, {"mig-1"});
    go_bad(stage, {"mig-0", "mig-2"});
    CHECK(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
    CHECK(phase_of(stage, "mig-0") == IncidentPhase::Open);
    CHECK(phase_of(stage, "mig-2") == IncidentPhase::Open);
  }
}

TEST_CASE("Devices of a card that go bad less than healthyFor apart are one fault, and later ones another") {
  for (const auto apart : {minutes(9), minutes(10)}) {
    CAPTURE(apart.count());
    auto stage = two_cards(Tells::Counters, 1.5);
    go_bad(stage, {"mig-0"});
    stage.run_for(apart - Seconds(70), Seconds(10));
    go_bad(stage, {"mig-1"});
    CHECK(phase_of(stage, "mig-1") == (apart < minutes(10) ? IncidentPhase::Open : IncidentPhase::Quarantined));
  }
}

TEST_CASE("Whoever vouches for a device of a card vouches for the card") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    auto stage = two_cards(Tells::Counters, 1.5);
    break_for_a_while(stage, {"mig-0"});
    break_for_a_while(stage, {"other-0"});
    go_bad(stage, {"mig-1"});
    REQUIRE(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
    acknowledge_rule(stage, "mig-1");
    CHECK(phase_of(stage, "mig-1") == IncidentPhase::Acknowledged);
    if (restarts) stage.restart();
    go_well(stage, {"mig-1"});
    CHECK(penalty_in_state(stage, "mig-0") == 0);
    CHECK(penalty_in_state(stage, "other-0") == 1);
    go_bad(stage, {"mig-2"});
    CHECK(phase_of(stage, "mig-2") == IncidentPhase::Open);
  }
}

TEST_CASE("An incident that goes on when another device of its card is vouched for keeps its penalty") {
  auto stage = two_cards(Tells::Counters, 1.5);
  go_bad(stage, {"mig-0"});
  stage.run_for(minutes(20), Seconds(10));
  go_bad(stage, {"mig-1"});
  REQUIRE(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
  acknowledge_rule(stage, "mig-1");
  CHECK(phase_of(stage, "mig-0") == IncidentPhase::Open);
  CHECK(penalty_in_state(stage, "mig-0") == 1);
}

TEST_CASE("A card that is partitioned anew is the same card, and one that is swapped is not") {
  for (const bool is_swapped : {false, true}) {
    CAPTURE(is_swapped);
    auto stage = two_cards(Tells::Parent, 1.5);
    break_for_a_while(stage, {"mig-0"});
    for (const auto& device : kCardA) drop_pod(stage, "pod-" + device, "claim-" + device);
    publish_cards(stage, Tells::Parent, {"half-0", "mig-1"}, is_swapped ? "c" : "a");
    hold(stage, "half-0");
    hold(stage, "mig-1");
    stage.run_for(minutes(5), Seconds(10));
    go_bad(stage, {"half-0"});
    CHECK(phase_of(stage, "half-0") == (is_swapped ? IncidentPhase::Open : IncidentPhase::Quarantined));
  }
}

TEST_CASE("What is decided of a card stands while its driver is away, also for the process after us") {
  auto stage = two_cards(Tells::Counters, 1.5);
  break_for_a_while(stage, {"mig-0"});
  go_bad(stage, {"mig-1"});
  REQUIRE(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  stage.run_for(minutes(2), Seconds(10));
  stage.restart();
  stage.run_for(minutes(2), Seconds(10));
  CHECK(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
  publish_cards(stage, Tells::Counters);
  stage.run_for(minutes(2), Seconds(10));
  CHECK(phase_of(stage, "mig-1") == IncidentPhase::Quarantined);
  CHECK(stage.verdict("node-a", Reason::Quarantined)->message.contains("with its card's other devices"));
}

TEST_CASE("The status has of each device of a card the penalty of the card") {
  auto stage = two_cards(Tells::Counters);
  stage.whole_policy().status = true;
  stage.send_policy();
  for (const std::string device : {"mig-0", "other-0", "mig-1"}) break_for_a_while(stage, {device});
  std::optional<ClusterStatus> told;
  stage.report("pod-other-1", Health::Unhealthy, "Xid 79");
  for (int second = 0; second < 30; ++second) {
    for (const auto& action : stage.turn()) {
      stage.answer(action);
      stage.show(action);
      if (const auto* write = std::get_if<status::WriteStatus>(&action)) {
        const auto read = parse_status(write->text);
        REQUIRE(read);
        told = *read;
      }
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(told);
  std::map<std::string, double> penalties;
  for (const auto& device : told->devices)
    penalties[device.device.substr(device.device.rfind('/') + 1)] = device.penalty;
  CHECK(penalties["mig-0"] == doctest::Approx(2).epsilon(0.01));
  CHECK(penalties["mig-1"] == doctest::Approx(2).epsilon(0.01));
  CHECK(penalties["other-0"] == 1);
}

TEST_CASE(
    "Whoever says when he has looked at a device vouches for what its card broke until then, and for nothing later") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    auto stage = two_cards(Tells::Counters, 9);
    break_for_a_while(stage, {"mig-1"});
    break_for_a_while(stage, {"mig-2"});
    go_bad(stage, {"mig-0"});
    const auto looked_at = stage.now().wall;
    stage.run_for(minutes(20), Seconds(10));
    break_for_a_while(stage, {"mig-2"});
    break_for_a_while(stage, {"mig-3"});
    auto node = stage.node_named("node-a");
    node.meta.annotations.emplace_back(kAcknowledgeAnnotation, format_rfc3339(looked_at));
    node.meta.annotations.sort();
    stage.put(node);
    if (restarts) stage.restart();
    stage.run_for(Seconds(30));
    REQUIRE(phase_of(stage, "mig-0") == IncidentPhase::Acknowledged);
    CHECK(penalty_in_state(stage, "mig-1") == 0);
    CHECK(penalty_in_state(stage, "mig-2") == doctest::Approx(1).epsilon(0.01));
    CHECK(penalty_in_state(stage, "mig-3") == doctest::Approx(1).epsilon(0.01));
  }
}

TEST_CASE("What broke while the clock was ahead is vouched for by whoever looks when that is set right") {
  auto stage = two_cards(Tells::Counters, 9);
  stage.set_clock(hours(5));
  stage.run_for(hours(1), Seconds(30));  // until it is believed
  break_for_a_while(stage, {"mig-1"});
  stage.set_clock(hours(0));
  stage.run_for(hours(1), Seconds(30));
  REQUIRE(penalty_in_state(stage, "mig-1") > 0);
  REQUIRE(record_of(stage, "mig-1")->past.incidents.back().at > stage.now().wall);
  go_bad(stage, {"mig-0"});
  auto node = stage.node_named("node-a");
  node.meta.annotations.emplace_back(kAcknowledgeAnnotation, format_rfc3339(stage.now().wall));
  node.meta.annotations.sort();
  stage.put(node);
  stage.run_for(Seconds(30));
  REQUIRE(phase_of(stage, "mig-0") == IncidentPhase::Acknowledged);
  CHECK(penalty_in_state(stage, "mig-1") == 0);
}

TEST_CASE("A device that is quarantined where its policy only observes keeps no other of its card from quarantine") {
  for (const bool is_observed : {true, false}) {
    CAPTURE(is_observed);
    auto stage = two_cards(Tells::Counters, 1.5);
    stage.policy().enforce_on = EnforceOn{.namespaces = {"default"}, .nodes = {}, .percent = 100};
    stage.send_policy();
    if (is_observed) {
      drop_pod(stage, "pod-mig-0", "claim-mig-0");
      stage.run_for(Seconds(10));
      auto claim = stage.claim("claim-lab", {"mig-0"}, "pod-lab");
      claim.meta.ns = "lab";
      stage.put(claim);
      stage.pod({.name = "pod-lab", .owner = "Job/lab", .claim = "claim-lab", .ns = "lab"});
      stage.run_for(Seconds(10));
    }
    break_for_a_while(stage, {"mig-2"});
    stage.report(is_observed ? "pod-lab" : "pod-mig-0", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(70));
    REQUIRE(phase_of(stage, "mig-0") == IncidentPhase::Quarantined);
    go_bad(stage, {"mig-1"});
    CHECK(phase_of(stage, "mig-1") == (is_observed ? IncidentPhase::Quarantined : IncidentPhase::Open));
  }
}

TEST_CASE("Whoever vouches for a replica of a card vouches for the card") {
  const std::string card = "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d";
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.node = true, .node_at_least_percent = 1};
  stage.policy().recover = {.hold = hours(1), .half_life = hours(7200), .quarantine_above = 1.5};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4);
  for (const std::string replica : {"0", "1"}) {
    stage.pod({.name = "pod-" + replica, .owner = "Job/x", .device = card + "::" + replica});
  }
  stage.run_for(Seconds(10));
  go_bad(stage, {"0", "1"});
  go_well(stage, {"1"});
  REQUIRE(phase_of(stage, card + "::1") == IncidentPhase::Ended);
  REQUIRE(phase_of(stage, card + "::0") == IncidentPhase::Open);
  auto node = stage.node_named("node-a");
  node.meta.annotations.emplace_back(kAcknowledgeAnnotation, format_rfc3339(stage.now().wall));
  node.meta.annotations.sort();
  stage.put(node);
  stage.run_for(Seconds(30));
  REQUIRE(phase_of(stage, card + "::0") == IncidentPhase::Acknowledged);
  go_well(stage, {"0"});
  go_bad(stage, {"1"});
  CHECK(phase_of(stage, card + "::1") == IncidentPhase::Open);
}

TEST_CASE("Replicas of a card that break in turn are quarantined like one device") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.node = true, .node_at_least_percent = 1};
  stage.policy().recover = {.hold = hours(1), .half_life = hours(7200), .quarantine_above = 2.5};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4);
  for (const std::string replica : {"0", "1", "2"}) {
    stage.pod({.name = "pod-" + replica, .owner = "Job/x", .device = "GPU-1::" + replica});
  }
  stage.run_for(Seconds(10));
  break_for_a_while(stage, {"0"});
  break_for_a_while(stage, {"1"});
  stage.restart();
  go_bad(stage, {"2"});
  CHECK(phase_of(stage, "GPU-1::2") == IncidentPhase::Quarantined);
  // Each has the card's whole history, which is not added up again.
  const auto* said = stage.verdict("node-a", Reason::Quarantined);
  REQUIRE(said != nullptr);
  CHECK(said->message.starts_with("3 incidents: held"));
}

}  // namespace dhc::test::card_memory_test
