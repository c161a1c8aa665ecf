#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using std::chrono::minutes;

namespace {

Stage remembering() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover.hold = minutes(2);
  stage.send_policy();
  return stage;
}

/// What a leader writes down: while its rule stands, and after the hold is over and the rule is gone.
struct Written {
  std::string tainted;
  std::string on_probation;
};
Written written_by_a_leader() {
  auto leader = remembering();
  leader.run_for(Seconds(70));
  Written written{.tainted = leader.state_text(), .on_probation = {}};
  drop_pod(leader, "train-1", "train-gpu");
  leader.run_for(minutes(3));
  REQUIRE(leader.rule() == nullptr);
  written.on_probation = leader.state_text();
  REQUIRE(parse_state(written.on_probation).records.at(0).incident.probation_until());
  return written;
}

Stage standby() {
  auto stage = remembering();
  drop_pod(stage, "train-1", "train-gpu");
  stage.deliver(Leading{.leads = false});
  return stage;
}

std::vector<incident_state::WriteState> states_in(const std::vector<Action>& actions) {
  std::vector<incident_state::WriteState> states;
  for (const auto& action : actions) {
    if (const auto* state = std::get_if<incident_state::WriteState>(&action)) states.push_back(*state);
  }
  return states;
}

}  // namespace

TEST_CASE("A state that the watch shows late is not overwritten, and its rule's end is nobody's word") {
  const auto written = written_by_a_leader();
  auto stage = standby();
  stage.put(state_map(written.tainted));
  stage.turn();
  stage.deliver(Leading{.leads = true});
  const auto actions = stage.turn();
  const auto states = states_in(actions);
  REQUIRE(states.size() == 1);
  CHECK(states[0].uid == "uid-state");
  CHECK(!states[0].resource_version.empty());
  for (const auto& action : actions) {
    const bool is_state = std::holds_alternative<incident_state::WriteState>(action);
    stage.answer(action, is_state ? Status(fail(ErrorKind::Conflict, "the object has been modified")) : Status());
  }
  stage.turn();
  stage.put(state_map(written.on_probation));
  stage.run_for(Seconds(30));
  const auto* seen = stage.verdict("node-a", Reason::OnProbation);
  REQUIRE(seen != nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  const auto records = parse_state(stage.state_text()).records;
  REQUIRE(records.size() == 1);
  CHECK(records[0].past.penalty > 0);
  CHECK(records[0].incident.probation_until());
}

TEST_CASE("Whoever writes the state over ours has it written again, once") {
  auto stage = remembering();
  stage.run_for(Seconds(70));
  const auto ours = stage.state_text();
  const auto count = std::ranges::count(stage.writes(), "state");
  stage.put(state_map(R"({"version":1,"devices":[]})"));
  stage.run_for(minutes(1));
  CHECK(stage.state_text() == ours);
  CHECK(std::ranges::count(stage.writes(), "state") == count + 1);
}

TEST_CASE("A state that is gone because the data went back was deleted by nobody, and is written again") {
  for (const bool went_back : {true, false}) {
    CAPTURE(went_back);
    auto stage = remembering();
    stage.run_for(Seconds(70));
    // Another incident after the first: both are remembered.
    stage.report("train-1", k8s::Health::Healthy);
    stage.run_for(minutes(11));
    stage.report("train-1", k8s::Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(70));
    REQUIRE(parse_state(stage.state_text()).records.at(0).past.count == 2);
    stage.deliver(k8s::Delivery(
        k8s::Snapshot{.kind = k8s::Kind::ConfigMap, .objects = {}, .served = true, .went_back = went_back}));
    stage.run_for(minutes(1));
    const auto records = parse_state(stage.state_text()).records;
    REQUIRE(records.size() == 1);
    CHECK(records[0].past.count == (went_back ? 2 : 1));
  }
}

TEST_CASE("A state that is nested without end is damage, as one that is no JSON") {
  for (const std::size_t depth : {100U, 400'000U}) {
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    const auto content = parse_state(R"({"version":2,"x":)" + nested + R"(,"devices":[]})");
    CHECK(content.damage == "it is not a JSON object");
    CHECK(content.sections.empty());
  }
  auto stage = remembering();
  stage.put(
      state_map(R"({"version":2,"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + R"(,"devices":[]})"));
  stage.run_for(Seconds(70));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("Another hand is seen also while our write is on its way") {
  auto stage = remembering();
  stage.settle();
  stage.advance(Seconds(61));
  const auto actions = stage.turn();
  REQUIRE(states_in(actions).size() == 1);
  // The API server took ours, then theirs, and its answer to us comes last.
  stage.put(state_map(states_in(actions)[0].text));
  stage.put(state_map(R"({"version":1,"devices":[]})"));
  stage.turn();
  for (const auto& action : actions) stage.answer(action);
  stage.run_for(Seconds(30));
  CHECK(parse_state(stage.state_text()).records.size() == 1);
}

TEST_CASE("An old term's answer is not the new term's") {
  auto stage = remembering();
  stage.run_for(Seconds(61));
  stage.report("train-1", k8s::Health::Healthy);
  const auto late = [&] {
    for (int i = 0; i < 60; ++i) {
      stage.advance(Seconds(1));
      for (const auto& action : stage.turn()) {
        if (std::holds_alternative<incident_state::WriteState>(action)) return action;
        stage.answer(action);
      }
    }
    return Action();
  }();
  REQUIRE(std::holds_alternative<incident_state::WriteState>(late));
  stage.deliver(Leading{.leads = false});
  stage.turn();
  stage.deliver(Leading{.leads = true});
  const auto own = states_in(stage.turn());
  REQUIRE(own.size() == 1);
  CHECK(own[0].term != std::get<incident_state::WriteState>(late).term);
  stage.deliver(Outcome{.action = late, .status = {}});
  stage.advance(minutes(1));
  // Still under way: the answer was to the write of the term before.
  CHECK(states_in(stage.turn()).empty());
  stage.deliver(Outcome{.action = own[0], .status = fail(ErrorKind::Unavailable, "no")});
  CHECK(states_in(stage.turn()).empty());
  stage.advance(minutes(1));
  CHECK(states_in(stage.turn()).size() == 1);
}

TEST_CASE("A rule that an operator removed just before the leader ended is not made again") {
  auto leader = remembering();
  leader.settle();
  leader.advance(Seconds(61));
  std::string before;
  for (const auto& action : leader.turn()) {
    if (const auto* state = std::get_if<incident_state::WriteState>(&action)) before = state->text;
  }
  REQUIRE(parse_state(before).records.at(0).ours.rule.uid().empty());

  for (const bool seen : {true, false}) {
    auto stage = remembering();
    stage.deliver(Leading{.leads = false});
    stage.advance(Seconds(61));
    stage.turn();
    stage.put(state_map(before));
    auto tainted = remembering();
    tainted.run_for(Seconds(62));
    const auto rule = *tainted.rule();
    if (seen) stage.put(rule);
    stage.turn();
    if (seen) stage.remove(k8s::Kind::DeviceTaintRule, rule.meta.name);
    stage.advance(Seconds(1));
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(5));
    CAPTURE(seen);
    CHECK((stage.rule() == nullptr) == seen);
    CHECK((stage.verdict("node-a", Reason::Acknowledged) != nullptr) == seen);
  }
}

TEST_CASE("An eviction of the leader before us that shows late holds its slot") {
  auto stage = remembering();
  stage.deliver(Leading{.leads = false});
  stage.run_for(Seconds(70));
  const auto asked_at = stage.now().wall;
  stage.deliver(Leading{.leads = true});
  stage.turn();
  CHECK(stage.controller().stats().in_flight == 0);
  for (const bool late : {false, true}) {
    auto& pod = stage.pod_named("train-1");
    pod.conditions = {{.type = std::string(kConditionType),
                       .status = "True",
                       .reason = "Unhealthy",
                       .message = "gpu.example.com/node-a/gpu-0 unhealthy since 2026-01-01T00:00:00Z"},
                      {.type = std::string(kDisruptionTarget), .status = "True", .reason = std::string(kEvictedByApi)}};
    pod.meta.deletion_grace_seconds = 30;
    // A drain long after we began is not ours, and not the leader's before us.
    pod.meta.deletion = asked_at + Seconds(30) + (late ? minutes(1) : minutes(0));
    stage.restart();
    stage.deliver(Leading{.leads = false});
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.turn();
    stage.upsert_pod("train-1");
    stage.turn();
    CAPTURE(late);
    CHECK(stage.controller().stats().in_flight == (late ? 0 : 1));
  }
}

TEST_CASE("What is told of a device's past ends at once when an operator deletes the state") {
  auto stage = remembering();
  stage.run_for(Seconds(70));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(3));
  REQUIRE(stage.verdict("node-a", Reason::OnProbation) != nullptr);
  stage.remove(k8s::Kind::ConfigMap, std::string(kIncidentsName));
  stage.turn();
  CHECK(stage.verdict("node-a", Reason::OnProbation) == nullptr);
}

}  // namespace dhc::test
