// From 0.1.0 to this version, back, and here again: what each has written down, and what becomes of it.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

Stage upgraded_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  return stage;
}

k8s::ConfigMap earlier_map(std::string text) {
  auto map = state_map(std::move(text));
  map.meta.name = kStateName;
  map.meta.uid = "uid-earlier";
  map.data = {{std::string(kStateEntry), map.data.begin()->second}};
  return map;
}

/// What 0.1.0 wrote of gpu-0, with these members beside those that it always wrote.
std::string earlier_text(const Stage& stage, Millis began_ago, const std::string& members) {
  const auto began = format_rfc3339(stage.now().wall - began_ago);
  return fmt::format(
      R"({{"version":1,"devices":[{{"source":"dra","scope":"{}","place":"node-a","device":"gpu-0","policy":"p",)"
      R"("incidents":1,"penalty":1.0,"penaltyAt":"{}",{},"history":[{{"at":"{}","reason":"Xid 79"}}]}}]}})",
      kDriver, began, members, began);
}
std::string open_members(const Stage& stage, Millis began_ago) {
  const auto began = format_rfc3339(stage.now().wall - began_ago);
  return fmt::format(R"("open":true,"since":"{}","openedAt":"{}")", began, began);
}

const DeviceRecord* remembered(const StateContent& content) {
  for (const auto& record : content.records) {
    if (record.key.device == "gpu-0") return &record;
  }
  return nullptr;
}

IncidentPhase phase_in(const Stage& stage) {
  const auto content = parse_state(stage.state_text());
  const auto* record = remembered(content);
  REQUIRE(record != nullptr);
  return record->incident.phase();
}

}  // namespace

TEST_CASE("What 0.1.0 has written down is taken over before anything is decided, and its ConfigMap is left alone") {
  auto stage = upgraded_stage();
  stage.report("train-1", k8s::Health::Healthy);
  stage.put(earlier_map(earlier_text(stage, hours(3), open_members(stage, hours(3)) + R"(,"quarantined":true)")));
  stage.restart();
  stage.run_for(minutes(30), Seconds(30));
  CHECK(phase_in(stage) == IncidentPhase::Quarantined);
  CHECK(stage.verdict("node-a", Reason::Quarantined) != nullptr);
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  for (const auto& action : stage.turn()) {
    const auto* write = std::get_if<incident_state::WriteState>(&action);
    if (write != nullptr) CHECK(write->name == kIncidentsName);
  }
  CHECK(stage.state_text().find(R"("imported":"uid-earlier/)") != std::string::npos);
}

TEST_CASE("What a standby has taken over of 0.1.0, and nobody has written, is taken over again when it leads") {
  auto stage = upgraded_stage();
  stage.report("train-1", k8s::Health::Healthy);
  stage.put(earlier_map(earlier_text(stage, hours(3), open_members(stage, hours(3)) + R"(,"quarantined":true)")));
  stage.restart();
  stage.deliver(Leading{.leads = false});
  stage.run_for(minutes(2));
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(2));
  CHECK(phase_in(stage) == IncidentPhase::Quarantined);
  CHECK(stage.verdict("node-a", Reason::Quarantined) != nullptr);
  CHECK(stage.state_text().find(R"("imported":"uid-earlier/)") != std::string::npos);
}

TEST_CASE("An operator who deletes our state while a replica stands by does not bring 0.1.0's back") {
  for (const bool has_taken_over : {false, true}) {
    CAPTURE(has_taken_over);
    auto stage = upgraded_stage();
    stage.report("train-1", k8s::Health::Healthy);
    stage.put(earlier_map(earlier_text(stage, hours(3), open_members(stage, hours(3)) + R"(,"quarantined":true)")));
    if (has_taken_over) {
      stage.restart();
      stage.run_for(minutes(2));
      REQUIRE(phase_in(stage) == IncidentPhase::Quarantined);
    } else {
      stage.put(state_map(R"({"version":2,"devices":[]})"));
    }
    stage.restart();
    stage.deliver(Leading{.leads = false});
    stage.run_for(minutes(2));
    stage.remove(k8s::Kind::ConfigMap, std::string(kIncidentsName));
    stage.run_for(Seconds(10));
    if (stage.rule() != nullptr) stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(2));
    CHECK(stage.rule() == nullptr);
    CHECK(stage.verdict("node-a", Reason::Quarantined) == nullptr);
  }
}

TEST_CASE("0.1.0's state is taken over once: what has ended since does not come back with a restart") {
  auto stage = upgraded_stage();
  stage.put(earlier_map(earlier_text(stage, hours(3), open_members(stage, hours(3)))));
  stage.restart();
  stage.run_for(Seconds(10));
  stage.report("train-1", k8s::Health::Healthy);
  stage.run_for(minutes(12), Seconds(10));
  CHECK(phase_in(stage) == IncidentPhase::Ended);
  const auto done = deeds(stage);
  stage.restart();
  stage.run_for(minutes(12), Seconds(10));
  CHECK(phase_in(stage) == IncidentPhase::Ended);
  CHECK(deeds(stage) == done);
}

TEST_CASE("After a rollback what 0.1.0 has seen counts, and what it only knows from our rules does not") {
  for (const std::string seen : {"ended", "adopted and acknowledged", "nothing"}) {
    CAPTURE(seen);
    auto stage = upgraded_stage();
    const auto first = earlier_text(stage, Millis(0), open_members(stage, Millis(0)));
    stage.put(earlier_map(first));
    stage.restart();
    stage.run_for(Seconds(70));
    REQUIRE(stage.rule() != nullptr);
    drop_pod(stage, "train-1", "train-gpu");
    stage.run_for(Seconds(10));
    // 0.1.0 leads.
    stage.deliver(Leading{.leads = false});
    stage.turn();
    stage.advance(hours(1));
    const auto now = format_rfc3339(stage.now().wall);
    auto text = first;
    const std::string is_open = R"("open":true)";
    if (seen == "ended") {
      const auto end =
          fmt::format(R"("closedAt":"{}","closedBecause":"a pod that holds it has reported Healthy")", now);
      text.replace(text.find(is_open), is_open.size(), end);
      stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
    } else if (seen == "adopted and acknowledged") {
      text = earlier_text(stage, minutes(59), open_members(stage, minutes(59)) + R"(,"acknowledged":"Removed")");
      const std::string reason = R"("reason":"Xid 79")";
      text.replace(text.find(reason), reason.size(), R"("reason":"adopted from DeviceTaintRule dhc-x")");
    } else {
      text = first;
    }
    stage.put(earlier_map(text));
    stage.restart();
    stage.run_for(minutes(20), Seconds(30));
    if (seen == "ended") {
      CHECK(phase_in(stage) == IncidentPhase::Ended);
      CHECK(stage.rule() == nullptr);
    } else {
      CHECK(phase_in(stage) == IncidentPhase::Open);
      CHECK(stage.rule() != nullptr);
    }
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  }
}

TEST_CASE("What 0.1.0 has counted after a rollback adds to a penalty that has decayed by then, at the policy's pace") {
  for (const bool stands_by : {false, true}) {
    CAPTURE(stands_by);
    auto stage = upgraded_stage();
    stage.policy().recover.half_life = hours(1);
    stage.send_policy();
    stage.run_for(Seconds(70));
    REQUIRE(phase_in(stage) == IncidentPhase::Open);
    stage.deliver(Leading{.leads = false});
    stage.turn();
    stage.advance(hours(2));
    stage.put(earlier_map(earlier_text(stage, minutes(1), open_members(stage, minutes(1)))));
    stage.restart();
    if (stands_by) {
      // What it has taken over while standing by is taken over anew, not forgotten.
      stage.deliver(Leading{.leads = false});
      stage.turn();
      stage.deliver(Leading{.leads = true});
    }
    stage.run_for(Seconds(30));
    const auto content = parse_state(stage.state_text());
    REQUIRE(remembered(content) != nullptr);
    CHECK(remembered(content)->past.count == 2);
    CHECK(remembered(content)->past.penalty == doctest::Approx(1.25).epsilon(0.01));
  }
}

TEST_CASE("A rule that went away while 0.1.0 led is made again: nobody knows who removed it") {
  auto stage = upgraded_stage();
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  stage.put(earlier_map(R"({"version":1,"devices":[]})"));
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.restart();
  stage.run_for(minutes(3));
  CHECK(stage.rule() != nullptr);
  CHECK(phase_in(stage) == IncidentPhase::Open);
}

TEST_CASE("An evicted owner's replacement is not evicted again for what 0.1.0 has evicted it from") {
  auto stage = upgraded_stage();
  const auto loss =
      fmt::format(R"(,"lostBy":[{{"owner":"uid-train","at":"{}","holders":[]}}])", format_rfc3339(stage.now().wall));
  stage.put(earlier_map(earlier_text(stage, Millis(0), open_members(stage, Millis(0)) + loss)));
  stage.policy().evict = EvictRules{};
  stage.send_policy();
  stage.restart();
  CHECK(stage.run_for(minutes(50), Seconds(10)).empty());
}

TEST_CASE("Nothing is decided before 0.1.0's ConfigMap has been looked for, and it is not waited for in vain") {
  auto stage = upgraded_stage();
  stage.run_for(Seconds(70));
  const auto lists = stage.lists();
  // `has_state`: we have written a state of our own. Only without one is 0.1.0's all that there may be.
  for (const bool has_state : {true, false}) {
    Controller controller;
    std::vector<Message> messages;
    for (const auto& list : lists) {
      const auto* snapshot = std::get_if<k8s::Snapshot>(&list);
      const bool is_state = snapshot != nullptr && snapshot->kind == k8s::Kind::ConfigMap;
      messages.emplace_back(
          is_state && !has_state ? k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::ConfigMap, .objects = {}}) : list);
    }
    messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(stage.whole_policy())});
    auto now = stage.now();
    (void)controller.turn(messages, now);
    CHECK(controller.verdicts().empty());
    now.mono += Seconds(30) - Millis(1);
    now.wall += Seconds(30) - Millis(1);
    (void)controller.turn({}, now);
    CHECK(controller.verdicts().empty());
    now.mono += Millis(1);
    now.wall += Millis(1);
    (void)controller.turn({}, now);
    bool is_unread = false;
    for (const auto& verdict : controller.verdicts()) is_unread = is_unread || verdict.reason == Reason::StateNotRead;
    CHECK_FALSE(controller.verdicts().empty());
    CHECK(is_unread != has_state);
  }
}

TEST_CASE(
    "What was sent before 0.1.0's state was taken over, and is accepted after it, is no word that it is written") {
  for (const std::string device : {"gpu-0", "gpu-3"}) {
    for (const bool is_shown_first : {false, true}) {
      CAPTURE(device);
      CAPTURE(is_shown_first);
      auto stage = upgraded_stage();
      stage.run_for(Seconds(70));
      REQUIRE(stage.rule() != nullptr);
      drop_pod(stage, "train-1", "train-gpu");
      stage.run_for(Seconds(10));
      // 0.1.0 has led, and has seen an incident begin and end.
      stage.advance(hours(1));
      const auto now = format_rfc3339(stage.now().wall);
      const auto ended =
          fmt::format(R"("closedAt":"{}","closedBecause":"a pod that holds it has reported Healthy")", now);
      auto text = earlier_text(stage, minutes(30), ended);
      text.replace(text.find("gpu-0"), device.size(), device);
      stage.controller() = Controller();
      for (auto& list : stage.lists()) stage.deliver(std::move(list));
      stage.send_policy();
      stage.run_for(Seconds(31));
      stage.claim("other-gpu", {"gpu-1"}, "other-1");
      stage.pod({.name = "other-1",
                 .owner = "Job/other",
                 .health = k8s::Health::Unhealthy,
                 .message = "Xid 79",
                 .claim = "other-gpu"});
      std::optional<Action> sent;
      for (int second = 0; second < 120 && !sent; ++second) {
        for (const auto& action : stage.turn()) {
          if (std::holds_alternative<incident_state::WriteState>(action)) {
            sent = action;
          } else {
            stage.answer(action);
            stage.show(action);
          }
        }
        stage.advance(Seconds(1));
      }
      REQUIRE(sent);
      const auto settle_turn = [&] {
        for (const auto& action : stage.turn()) {
          if (std::holds_alternative<taint::DeleteRule>(action)) CHECK(stage.state_text().contains("imported"));
          stage.answer(action);
          stage.show(action);
        }
      };
      stage.deliver(EarlierState{earlier_map(text)});
      settle_turn();
      stage.show(*sent);
      if (is_shown_first) settle_turn();
      stage.answer(*sent);
      for (int second = 0; second < 30; ++second) {
        settle_turn();
        stage.advance(Seconds(1));
      }
      CHECK(stage.state_text().contains(R"("imported":"uid-earlier/)"));
      const auto content = parse_state(stage.state_text());
      const auto found = std::ranges::find(content.records, device, [](const auto& one) { return one.key.device; });
      REQUIRE(found != content.records.end());
      CHECK(found->incident.phase() == IncidentPhase::Ended);
    }
  }
}

TEST_CASE("An earlier state that cannot be read, or that 0.1.0 cannot have written, is said and left alone") {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"{", "ConfigMap device-health-state: it is not a JSON object"},
           {R"({"version":9,"devices":[]})",
            "ConfigMap device-health-state is of version 9, which 0.1.0 did not write: it is left alone"}}) {
    auto stage = upgraded_stage();
    stage.put(earlier_map(text));
    stage.restart();
    const auto actions = stage.turn();
    const auto* verdict = stage.verdict("device-health-incidents", Reason::StateDamaged);
    REQUIRE(verdict != nullptr);
    CHECK(verdict->message.starts_with(said));
    for (const auto& action : actions) stage.answer(action);
    stage.run_for(Seconds(70));
    CHECK(stage.rule() != nullptr);
    CHECK_FALSE(stage.state_text().empty());
  }
}

TEST_CASE("A node that rejects pods, and a node with a taint of ours, were devices to 0.1.0 and are nodes now") {
  const auto content =
      parse_state(R"({"version":1,"devices":[)"
                  R"({"source":"plugin","scope":"example.com/gpu","place":"node-a","device":"admission of pods"},)"
                  R"({"source":"plugin","scope":"unknown","place":"node-b","device":"unknown"}]})");
  CHECK_FALSE(content.damage);
  REQUIRE(content.records.size() == 2);
  CHECK(content.records[0].key == DeviceKey::rejecting_node("node-a", "example.com/gpu"));
  CHECK(content.records[1].key == DeviceKey::node_taint("node-b"));
  // A device of that name is one, since the state has words for both.
  const auto device = parse_state(
      R"({"version":2,"devices":[{"source":"plugin","scope":"unknown","place":"node-b","device":"unknown"}]})");
  REQUIRE(device.records.size() == 1);
  CHECK(device.records[0].key.is_device());
}

}  // namespace dhc::test
