#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/incidents/brake_state.h"
#include "domain/incidents/state_text.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Eight held devices on one node, eight free ones on another; the state is written.
struct TrialStage : Stage {
  TrialStage() {
    whole_policy().own_namespace = "dhc";
    limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
    send_policy();
    node("node-a", 8);
    node("node-b", 8);
    for (int i = 0; i < 8; ++i) {
      pod({.name = fmt::format("p-{}", i),
           .owner = fmt::format("ReplicaSet/{}", i),
           .device = fmt::format("gpu-{}", i)});
    }
    settle();
  }

  void break_devices(int count) {
    for (int i = 0; i < count; ++i) report(fmt::format("p-{}", i), Health::Unhealthy);
    node("node-a", 8, 8 - count);
  }

  /// The first device loses its pod, which comes back elsewhere; then all the others of its node break.
  void lose_one_and_break_the_rest() {
    break_devices(1);
    CHECK(run_for(minutes(2), Seconds(5)) == Names{"p-0"});
    replace("p-0");
    for (int i = 1; i < 8; ++i) report(fmt::format("p-{}", i), Health::Unhealthy);
    node("node-a", 8, 0);
  }

  /// The pod is gone, and its owner has another one.
  void replace(const std::string& name, Health health = Health::Healthy) {
    remove_pod(name);
    const auto again = name + "b";
    auto& made = pod({.name = again,
                      .node = "node-b",
                      .owner = "ReplicaSet/" + name.substr(2),
                      .device = "other-" + name.substr(2),
                      .health = health});
    made.meta.creation = now().wall;
    upsert_pod(again);
  }

  [[nodiscard]] std::string brake_says() const {
    const auto* said = verdict("node-a", Reason::BrakeEngaged);
    return said == nullptr ? std::string() : said->message;
  }
};

/// The trial is written down, and then its eviction as a charge on the caps: two writes of the state.
constexpr Millis kWrittenDown = Seconds(10);

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("Three dead cards of eight: one is tried after half an hour, and the brake is released over the others") {
  TrialStage stage;
  stage.break_devices(3);
  CHECK(stage.run_for(minutes(30) - Millis(1), Seconds(10)).empty());
  CHECK(stage.controller().stats().brakes_half_open == 0);
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-0"});
  CHECK(stage.controller().stats().brakes_half_open == 1);
  CHECK(stage.verdict("p-0", Reason::BrakeTrial) != nullptr);
  CHECK(has(stage.brake_says(), "half-open: default/p-0 on node-a/example.com/gpu/gpu-0 is tried"));
  CHECK(stage.run_for(Seconds(20)).empty());
  stage.replace("p-0");
  CHECK(stage.run_for(Seconds(30) - Millis(1)).empty());
  CHECK(stage.run_for(Millis(1)) == Names{"p-1", "p-2"});
  CHECK(stage.brake_says().empty());
}

TEST_CASE("A whole node that lies: one pod at a time, each wait twice as long, and only while there is a place") {
  TrialStage stage;
  stage.break_devices(8);
  std::vector<std::int64_t> at;
  for (int minute = 0; minute < 60 * 12; ++minute) {
    for (const auto& name : stage.run_for(minutes(1), Seconds(15))) {
      at.push_back(minute);
      stage.replace(name);
    }
  }
  // 30, then 60, 120 and 240 after the end of the one before, each of which passes after 5.
  REQUIRE(at.size() == 4);
  CHECK(at.at(0) == 29);  // as that minute ends
  CHECK(std::abs(at.at(1) - at.at(0) - 65) <= 1);
  CHECK(std::abs(at.at(2) - at.at(1) - 125) <= 1);
  CHECK(std::abs(at.at(3) - at.at(2) - 245) <= 1);
  CHECK(has(stage.brake_says(), "the last trial, default/p-3 on node-a/example.com/gpu/gpu-3 passed"));
}

TEST_CASE("A trial fails when the later pod's device goes bad too") {
  TrialStage stage;
  stage.break_devices(8);
  REQUIRE(stage.run_for(minutes(30) + kWrittenDown, Seconds(10)) == Names{"p-0"});
  stage.replace("p-0");
  stage.run_for(minutes(3), Seconds(10));
  stage.report("p-0b", Health::Unhealthy);
  stage.run_for(Seconds(1));
  CHECK(has(stage.brake_says(), "failed: its later pod p-0b is on a bad device too"));
  CHECK(has(stage.brake_says(), "half-open from 2026-11-20T13:33:"));
}

TEST_CASE("A pod of another namespace that names the trial's owner as its own passes no trial") {
  TrialStage stage;
  stage.break_devices(8);
  REQUIRE(stage.run_for(minutes(30) + kWrittenDown, Seconds(10)) == Names{"p-0"});
  stage.remove_pod("p-0");
  stage.pod({.name = "forged", .node = "node-b", .owner = "ReplicaSet/0", .device = "other-0", .ns = "mallory"})
      .meta.creation = stage.now().wall;
  stage.upsert_pod("forged");
  stage.run_for(minutes(20), Seconds(10));
  CHECK(has(stage.brake_says(), "half-open: default/p-0 on node-a/example.com/gpu/gpu-0 is tried"));
}

TEST_CASE("A trial passes when its later pod has run well for trialRuns, to the millisecond, and not before") {
  TrialStage stage;
  stage.break_devices(8);
  stage.run_for(minutes(30) + kWrittenDown, Seconds(10));
  stage.replace("p-0");
  stage.run_for(Seconds(5));  // it is looked for every five seconds
  stage.run_for(minutes(5) - Millis(1), Seconds(10));
  CHECK(has(stage.brake_says(), "a later pod of its owner must run well for 300 s"));
  stage.advance(Millis(1));
  stage.settle();
  CHECK(has(stage.brake_says(), "passed: its later pod p-0b runs well"));
}

TEST_CASE("A trial is void when no later pod comes within half an hour, or its owner is gone") {
  TrialStage stage;
  stage.break_devices(8);
  stage.run_for(minutes(30), Seconds(10));
  stage.remove_pod("p-0");
  CHECK(stage.run_for(minutes(29) + Seconds(50), Seconds(10)).empty());
  CHECK(has(stage.brake_says(), "a later pod of its owner must run well"));
  stage.run_for(Seconds(10));
  CHECK(has(stage.brake_says(), "void: no later pod of its owner ran well within 30 min"));
  CHECK(stage.run_for(minutes(59), Seconds(10)).empty());
  CHECK(stage.run_for(minutes(2), Seconds(10)) == Names{"p-1"});
  stage.remove(k8s::Kind::ReplicaSet, "1");
  stage.settle();
  CHECK(has(stage.brake_says(), "void: its owner is gone"));
}

TEST_CASE("A trial is void when its Job is over: no later pod will come") {
  TrialStage stage;
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = fmt::format("p-{}", i), .owner = fmt::format("Job/{}", i), .device = fmt::format("gpu-{}", i)});
    stage.job_named(fmt::format("{}", i)).backoff_limit = 6;
    stage.upsert_job(fmt::format("{}", i));
  }
  stage.break_devices(8);
  REQUIRE(stage.run_for(minutes(30) + kWrittenDown, Seconds(10)) == Names{"p-0"});
  stage.remove_pod("p-0");
  stage.run_for(Seconds(10));
  CHECK(has(stage.brake_says(), "a later pod of its owner must run well"));
  stage.job_named("0").conditions = {
      {.type = "Complete", .status = "True", .reason = {}, .message = {}, .last_transition = stage.now().wall}};
  stage.upsert_job("0");
  stage.settle();
  CHECK(has(stage.brake_says(), "void: its Job is over"));
}

TEST_CASE("Pods without an owner, and those that are opted out, are never tried") {
  TrialStage stage;
  for (int i = 0; i < 8; ++i) {
    auto& pod = stage.pod_named(fmt::format("p-{}", i));
    if (i < 4) pod.meta.controller.reset();
    if (i >= 4) pod.meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.upsert_pod(pod.meta.name);
  }
  stage.policy().evict->bare_pods = true;
  stage.send_policy();
  stage.break_devices(8);
  CHECK(stage.run_for(hours(5), Seconds(10)).empty());
  CHECK(has(stage.brake_says(), "half-open: no pod with room under the caps and a known place outside can be tried"));
}

TEST_CASE("Without a place on a node without bad devices nobody is tried") {
  for (const auto* what : {"full", "cordoned", "bad", "not ready", "not selected"}) {
    CAPTURE(what);
    TrialStage stage;
    const std::string_view word(what);
    if (word == "full") {
      for (int i = 0; i < 8; ++i) {
        stage.pod({.name = fmt::format("q-{}", i), .node = "node-b", .device = fmt::format("d-{}", i)});
      }
    } else if (word == "bad") {
      stage.pod({.name = "q", .node = "node-b", .device = "d", .health = Health::Unhealthy});
    } else if (word == "not selected") {
      k8s::SchedulingTerms terms;
      terms.node_selector = {{"pool", "a"}};
      for (int i = 0; i < 8; ++i) {
        stage.pod_named(fmt::format("p-{}", i)).scheduling = k8s::Shared(terms);
        stage.upsert_pod(fmt::format("p-{}", i));
      }
    } else {
      auto node = stage.node_named("node-b");
      node.unschedulable = word == "cordoned";
      node.ready = word != "not ready";
      stage.put(node);
    }
    stage.break_devices(8);
    CHECK(stage.run_for(hours(3), Seconds(10)).empty());
    CHECK(has(stage.brake_says(), "no pod with room under the caps and a known place outside can be tried"));
  }
}

TEST_CASE("A pod that waits takes the place of a trial, for a minute: then the scheduler does not want it there") {
  TrialStage stage;
  stage.break_devices(8);
  CHECK(stage.run_for(minutes(30) - Millis(1), Seconds(10)).empty());
  stage.pod({.name = "q", .node = {}, .owner = "ReplicaSet/q", .phase = k8s::PodPhase::Pending}).requests = {
      {"example.com/gpu", 8}};
  stage.upsert_pod("q");
  CHECK(stage.run_for(minutes(1) - Millis(1), Seconds(10)).empty());
  CHECK(has(stage.brake_says(), "no pod with room under the caps and a known place outside can be tried"));
  CHECK(stage.run_for(Millis(1) + kWrittenDown).size() == 1);
}

TEST_CASE("Nobody is tried before the trial is written down") {
  TrialStage stage;
  stage.break_devices(8);
  stage.run_for(minutes(30) - Millis(1), Seconds(10));
  stage.advance(Millis(1));
  for (int i = 0; i < 100; ++i) {
    for (const auto& action : stage.turn()) {
      CHECK_FALSE(std::holds_alternative<eviction::EvictPod>(action));
      if (std::holds_alternative<incident_state::WriteState>(action)) {
        stage.answer(action, fail(ErrorKind::Unavailable, "no"));
      } else {
        stage.answer(action);
      }
    }
    stage.advance(Seconds(5));
  }
}

TEST_CASE("A controller that restarts in a loop tries nobody else") {
  TrialStage stage;
  stage.break_devices(8);
  REQUIRE(stage.run_for(minutes(30) + kWrittenDown, Seconds(10)) == Names{"p-0"});
  for (int i = 0; i < 5; ++i) {
    stage.restart();
    CHECK(stage.run_for(minutes(1), Seconds(10)).empty());
  }
  stage.replace("p-0");
  stage.restart();
  CHECK(stage.run_for(minutes(4), Seconds(10)).empty());
  CHECK(stage.run_for(minutes(2), Seconds(10)).empty());
  CHECK(has(stage.brake_says(), "passed"));
  stage.restart();
  CHECK(stage.run_for(minutes(58), Seconds(10)).empty());
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"p-1"});
}

TEST_CASE("A pod that cannot be evicted within ten minutes is passed over") {
  TrialStage stage;
  stage.break_devices(8);
  stage.run_for(minutes(30) - Seconds(1), Seconds(10));
  std::vector<std::string> asked;
  for (int i = 0; i < 11 * 60; ++i) {
    stage.advance(Seconds(1));
    for (const auto& action : stage.turn()) {
      if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
        if (asked.empty() || asked.back() != evict->name) asked.push_back(evict->name);
        stage.answer(action, fail(ErrorKind::Blocked, "a budget"));
      } else if (const auto* state = std::get_if<incident_state::WriteState>(&action)) {
        stage.answer(action);
        stage.put(state_map(state->text, state->ns));
      } else {
        stage.answer(action);
      }
    }
  }
  CHECK(asked == Names{"p-0", "p-1"});
}

TEST_CASE("A trial counts against the caps: none is made while the day's is full, and the next when it has room") {
  TrialStage stage;
  stage.hold_caps();
  stage.limits().cap_cluster = stage.limits().cap_node = {.percent = 100, .at_least = 100};
  stage.limits().cap_per_day = {.percent = 0, .at_least = 1};
  stage.send_policy();
  stage.lose_one_and_break_the_rest();
  CHECK(stage.run_for(hours(20), Seconds(30)).empty());
  CHECK(stage.controller().stats().brakes_engaged > 0);
  CHECK(stage.run_for(hours(9), Seconds(30)).size() == 1);
}

TEST_CASE("Nobody is tried while a cap refuses him, and nothing is written down meanwhile") {
  TrialStage stage;
  stage.hold_caps();
  stage.limits().cap_cluster = {.percent = 100, .at_least = 100};
  stage.limits().cap_node = {.percent = 0, .at_least = 1};
  stage.send_policy();
  stage.lose_one_and_break_the_rest();
  stage.run_for(hours(1), Seconds(30));
  REQUIRE(has(stage.brake_says(), "half-open: no pod with room under the caps and a known place outside can be tried"));
  const auto before = stage.state_text();
  for (int i = 0; i < 120; ++i) {
    CHECK(stage.run_for(minutes(1), Seconds(30)).empty());
    CHECK(stage.state_text() == before);
  }
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{"device-health.io/cap-release", format_rfc3339(stage.now().wall)}};
  stage.put(node);
  CHECK(stage.run_for(minutes(1), Seconds(10)).size() == 1);
}

TEST_CASE("What was written of the brake is read again, and nonsense is left out") {
  TrialStage stage;
  stage.break_devices(8);
  stage.run_for(minutes(31), Seconds(10));
  const auto content = parse_state(stage.state_text());
  const auto section = std::ranges::find(content.sections, kBrakeSection, &StateSection::name);
  REQUIRE(section != content.sections.end());
  const auto& text = section->text;
  const auto state = parse_brake_state(text, stage.now());
  REQUIRE(state.engaged.size() == 2);
  const auto& [scope, brake] = *state.engaged.rbegin();
  CHECK(scope == BrakeScope{.scope = "example.com/gpu", .node = "node-a"});
  CHECK(brake.trials == 1);
  REQUIRE(brake.trial);
  CHECK(brake.trial->pod_uid == "uid-p-0");
  CHECK(brake.trial->evicted);
  CHECK(brake.since.wall == Stage().now().wall);
  for (const auto* bad : {"", "{}", "[1]", R"([{"scope":"a"}])", R"([{"scope":"a","since":"never"}])",
                          R"([{"scope":7,"since":"2026-11-20T12:00:00Z"}])",
                          R"([{"scope":"a","since":"2026-11-20T12:00:00Z","trials":-1}])"}) {
    CAPTURE(bad);
    CHECK(parse_brake_state(bad, stage.now()).engaged.empty());
  }
  const auto future = parse_brake_state(R"([{"scope":"a","since":"2036-11-20T12:00:00Z"}])", stage.now());
  REQUIRE(future.engaged.size() == 1);
  CHECK(future.engaged.begin()->second.since.wall == stage.now().wall);
}

TEST_CASE("Sections of a newer version survive being read and written") {
  TrialStage stage;
  stage.put(state_map(R"({"version":1,"devices":[],"later":{"a":[1,"x"]}})"));
  stage.restart();
  stage.break_devices(3);
  stage.run_for(minutes(1));
  const auto content = parse_state(stage.state_text());
  REQUIRE(content.sections.size() == 2);
  CHECK(content.sections.front() == StateSection{.name = "later", .text = R"({"a":[1,"x"]})"});
}

TEST_CASE("Five thousand nodes: the written brakes stay within their bound, the cluster's first") {
  Brake brake;
  std::map<BrakeScope, EngagedBrake> engaged;
  for (int i = 0; i < 5000; ++i) engaged[{.scope = "example.com/gpu", .node = fmt::format("node-{:04}", i)}];
  engaged[{.scope = "example.com/gpu", .node = {}}];
  brake.load({.engaged = std::move(engaged), .unheld = {}}, Stage().now());
  const auto text = brake_state_text(brake);
  CHECK(text.size() <= kBrakeStateLimit);
  const auto state = parse_brake_state(text, Stage().now());
  CHECK(state.engaged.contains({.scope = "example.com/gpu", .node = {}}));
  CHECK(state.engaged.size() > 1500);
}

}  // namespace dhc::test
