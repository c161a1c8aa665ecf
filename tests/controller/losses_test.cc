#include "app/losses/losses.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

Millis lost(Stage& stage, LossCause cause) {
  return stage.controller().losses().lost.at(static_cast<std::size_t>(cause));
}

Millis lost_in_all(Stage& stage) {
  Millis sum{0};
  for (const auto cause : kLossCauses) sum += lost(stage, cause);
  return sum;
}

std::vector<Millis> measured(Stage& stage, Span span) {
  std::vector<Millis> times;
  for (const auto& one : stage.controller().take_measured()) {
    if (one.span == span) times.push_back(one.took);
  }
  return times;
}

std::int64_t would_evict(Stage& stage) {
  std::int64_t sum = 0;
  for (const auto& [policy, count] : stage.controller().losses().would_evict) sum += count;
  return sum;
}

std::int64_t would_do(Stage& stage, Deed deed) {
  const auto counts = stage.controller().losses().would_do;
  const auto found = counts.find({deed, "p"});
  return found == counts.end() ? 0 : found->second;
}

std::int64_t ended(Stage& stage, PredictionEnd how) {
  const auto ends = stage.controller().losses().ends;
  const auto found = ends.find({"p", how});
  return found == ends.end() ? 0 : found->second;
}

/// The controller remembers; the pod on gpu-0 is bad from the first turn on.
Stage losing_stage(const RecoverRules& recover = {}) {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().recover = recover;
  stage.send_policy();
  return stage;
}

void hand_over(Stage& stage) {
  stage.deliver(Leading{.leads = false});
  stage.turn();
  stage.advance(Seconds(15));
  stage.deliver(Leading{.leads = true});
}

/// A pod that would be evicted, were the policy to enforce.
Stage foretold_stage() {
  Stage stage;
  stage.policy().mode = Mode::Observe;
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.node("node-b", 4, 4);
  stage.pod({.name = "w", .device = "gpu-0"});
  stage.settle();
  stage.report("w", Health::Unhealthy);
  stage.run_for(minutes(5));
  return stage;
}

}  // namespace

TEST_CASE("A bad device is lost to its pod until it goes, and to the taint until it ends, to the millisecond") {
  auto stage = losing_stage();
  const auto hold = stage.policy().recover.hold;
  stage.settle();
  CHECK(lost_in_all(stage) == Millis(0));
  stage.run_for(Seconds(61));
  stage.advance(Millis(250));
  drop_pod(stage, "train-1", "train-gpu");
  stage.settle();
  CHECK(lost(stage, LossCause::UnhealthyHeld) == Seconds(61) + Millis(250));
  stage.run_for(hold + hours(1), minutes(10));
  CHECK(stage.rule() == nullptr);
  CHECK(lost(stage, LossCause::UnhealthyHeld) == Seconds(61) + Millis(250));
  CHECK(lost(stage, LossCause::KeptOff) == hold);
  CHECK(lost_in_all(stage) == Seconds(61) + Millis(250) + hold);
}

TEST_CASE("A holder that works is no loss, whatever is still waited for") {
  auto stage = losing_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(100));
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), Seconds(10));
  CHECK(stage.rule() == nullptr);
  CHECK(lost_in_all(stage) == Seconds(100));
}

TEST_CASE("What a quarantine costs has a name of its own, and ends with the operator's word") {
  auto stage = losing_stage({.quarantine_above = 0});
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(48), minutes(10));
  CHECK(lost(stage, LossCause::Quarantine) == hours(48));
  CHECK(lost(stage, LossCause::KeptOff) == Millis(0));
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(hours(5), minutes(10));
  CHECK(lost(stage, LossCause::Quarantine) == hours(48));
}

TEST_CASE("A bad device that nobody holds and nothing keeps off is lost all the same") {
  auto stage = losing_stage();
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(2), minutes(10));
  CHECK(lost(stage, LossCause::UnhealthyFree) == hours(2));
  CHECK(lost(stage, LossCause::UnhealthyHeld) == Seconds(61));
}

TEST_CASE("A taint that stays though its driver has taken back its own word is a recovery that is waited for") {
  auto stage = losing_stage();
  const k8s::Taint theirs{"gpu.example.com/bad", "", "NoSchedule"};
  stage.run_for(Seconds(61));
  publish(stage, {{.name = "gpu-0", .taints = {theirs}, .attributes = {}}, {"gpu-1", {}, {}}});
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(1), minutes(1));
  CHECK(lost(stage, LossCause::KeptOff) == hours(1));
  publish(stage, {{.name = "gpu-0", .taints = {}, .attributes = {}}, {"gpu-1", {}, {}}});
  stage.run_for(hours(1), Seconds(10));
  CHECK(stage.rule() == nullptr);
  CHECK(lost(stage, LossCause::KeptOff) == hours(1));
  CHECK(lost(stage, LossCause::Recovering) == minutes(10));
}

TEST_CASE("A process that starts anew counts from its start, and not what was lost before") {
  auto stage = losing_stage();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(10), Seconds(10));
  CHECK(lost(stage, LossCause::KeptOff) == minutes(10));
  stage.restart();
  stage.settle();
  CHECK(lost_in_all(stage) == Millis(0));
  stage.run_for(minutes(7), Seconds(10));
  CHECK(lost(stage, LossCause::KeptOff) == minutes(7));
  CHECK(lost_in_all(stage) == minutes(7));
}

TEST_CASE("Who stands by loses nothing: the sum over all processes counts nothing twice") {
  auto stage = losing_stage();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(10), Seconds(10));
  stage.deliver(Leading{.leads = false});
  stage.run_for(hours(3), minutes(1));
  CHECK(lost(stage, LossCause::KeptOff) == minutes(10));
  CHECK(stage.controller().losses().lost_now.at(static_cast<std::size_t>(LossCause::KeptOff)) == 0);
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(2), Seconds(10));
  CHECK(lost(stage, LossCause::KeptOff) == minutes(12));
}

TEST_CASE("From the report to condition, taint, eviction and the running replacement is measured once each") {
  auto stage = losing_stage();
  stage.run_for(Seconds(100));
  auto all = stage.controller().take_measured();
  std::vector<Measured> expected = {{Span::ToNotice, Seconds(60)}, {Span::ToTaint, Seconds(60)}};
  REQUIRE(all.size() == 3);
  CHECK(std::ranges::count(all, expected[0]) == 1);
  CHECK(std::ranges::count(all, expected[1]) == 1);
  const auto eviction = std::ranges::find(all, Span::ToEviction, &Measured::span);
  REQUIRE(eviction != all.end());
  CHECK(eviction->took < Seconds(100));
  drop_pod(stage, "train-1", "train-gpu");
  stage.claim("train-gpu-2", {"gpu-1"}, "train-2");
  auto& pod =
      stage.pod({.name = "train-2", .owner = "Job/train", .claim = "train-gpu-2", .phase = k8s::PodPhase::Pending});
  pod.meta.creation = stage.now().wall;
  stage.upsert_pod("train-2");
  stage.run_for(Seconds(5));
  CHECK(stage.controller().take_measured().empty());
  stage.pod_named("train-2").phase = k8s::PodPhase::Running;
  stage.upsert_pod("train-2");
  stage.run_for(Seconds(5));
  CHECK(measured(stage, Span::ToReplacement) == std::vector<Millis>{Seconds(105)});
}

TEST_CASE("A replacement that runs before the eviction's answer is there is measured when the answer comes") {
  auto stage = losing_stage();
  std::optional<Action> eviction;
  for (int i = 0; i < 100 && !eviction; ++i) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<eviction::EvictPod>(action)) {
        eviction = action;
      } else {
        stage.answer(action);
        stage.show(action);
      }
    }
    if (!eviction) stage.advance(Seconds(1));
  }
  REQUIRE(eviction);
  drop_pod(stage, "train-1", "train-gpu");
  stage.claim("train-gpu-2", {"gpu-1"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .claim = "train-gpu-2"}).meta.creation = stage.now().wall;
  stage.upsert_pod("train-2");
  stage.run_for(Seconds(2));
  CHECK(measured(stage, Span::ToReplacement).empty());
  stage.answer(*eviction);
  stage.run_for(Seconds(1));
  CHECK(measured(stage, Span::ToReplacement).size() == 1);
}

TEST_CASE("A condition that stands when a process begins is not measured again") {
  auto stage = losing_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(100));
  CHECK(measured(stage, Span::ToNotice).size() == 1);
  stage.restart();
  stage.run_for(Seconds(100));
  stage.report("train-1", Health::Unhealthy, "Xid 119");
  stage.run_for(Seconds(100));
  CHECK(measured(stage, Span::ToNotice).empty());
}

TEST_CASE("The time between two incidents of a node is known to the process that comes after the first") {
  auto stage = losing_stage();
  stage.run_for(Seconds(100));
  CHECK(measured(stage, Span::NodeInterval).empty());
  stage.restart();
  stage.settle();
  stage.claim("c", {"gpu-2"}, "train-3");
  stage.pod({.name = "train-3", .owner = "Job/other", .claim = "c"});
  stage.settle();
  stage.report("train-3", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  CHECK(measured(stage, Span::NodeInterval) == std::vector<Millis>{Seconds(100)});
}

TEST_CASE("Each pod that would be evicted counts once, however often its verdict comes and goes") {
  auto stage = foretold_stage();
  CHECK(would_evict(stage) == 1);
  for (int i = 0; i < 3; ++i) {
    stage.report("w", Health::Unknown);
    stage.run_for(Seconds(30));
    stage.report("w", Health::Unhealthy);
    stage.run_for(Seconds(30));
  }
  CHECK(stage.verdict("w", Reason::WouldEvict) != nullptr);
  CHECK(would_evict(stage) == 1);
  CHECK(stage.controller().losses().ends.empty());
}

TEST_CASE("What became of a pod that would have been evicted is counted: recovered, failed, succeeded, deleted") {
  auto recovered = foretold_stage();
  recovered.report("w", Health::Healthy);
  recovered.run_for(minutes(30), Seconds(10));
  CHECK(ended(recovered, PredictionEnd::Recovered) == 1);
  auto failed = foretold_stage();
  failed.pod_named("w").phase = k8s::PodPhase::Failed;
  failed.upsert_pod("w");
  failed.settle();
  CHECK(ended(failed, PredictionEnd::Failed) == 1);
  auto succeeded = foretold_stage();
  succeeded.pod_named("w").phase = k8s::PodPhase::Succeeded;
  succeeded.upsert_pod("w");
  succeeded.settle();
  CHECK(ended(succeeded, PredictionEnd::Succeeded) == 1);
  auto deleted = foretold_stage();
  deleted.remove_pod("w");
  deleted.settle();
  CHECK(ended(deleted, PredictionEnd::Deleted) == 1);
  auto evicted = foretold_stage();
  evicted.policy().mode = Mode::Enforce;
  evicted.send_policy();
  evicted.run_for(minutes(5));
  CHECK(ended(evicted, PredictionEnd::Evicted) == 1);
  for (auto* stage : {&recovered, &failed, &succeeded, &deleted, &evicted}) {
    CHECK(would_evict(*stage) == 1);
    CHECK(stage->controller().losses().ends.size() == 1);
  }
}

TEST_CASE("A device that would be tainted counts once while it is bad, and again when it breaks again") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(5));
  REQUIRE(stage.verdict("node-a", Reason::WouldTaint) != nullptr);
  CHECK(would_do(stage, Deed::Taint) == 1);
  for (int i = 0; i < 3; ++i) {
    stage.report("train-1", Health::Unknown);
    stage.run_for(Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(30));
  }
  CHECK(would_do(stage, Deed::Taint) == 1);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(30), Seconds(10));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(5));
  CHECK(would_do(stage, Deed::Taint) == 2);
  hand_over(stage);
  stage.run_for(minutes(1));
  CHECK(would_do(stage, Deed::Taint) == 2);
}

TEST_CASE("Each retry that would be given back counts once, also where another has led meanwhile") {
  JobStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(minutes(3));
  CHECK(would_do(stage, Deed::Credit) == 1);
  stage.add_pod(1);
  stage.run_for(minutes(3));
  CHECK(would_do(stage, Deed::Credit) == 2);
  hand_over(stage);
  stage.run_for(minutes(1));
  CHECK(would_do(stage, Deed::Credit) == 2);
}

TEST_CASE("A pod that would be evicted before another leads is not counted again, and what becomes of it once") {
  auto stage = foretold_stage();
  hand_over(stage);
  stage.run_for(minutes(1));
  REQUIRE(stage.verdict("w", Reason::WouldEvict) != nullptr);
  CHECK(would_evict(stage) == 1);
  stage.restart();
  stage.run_for(minutes(1));
  REQUIRE(stage.verdict("w", Reason::WouldEvict) != nullptr);
  CHECK(would_evict(stage) == 0);
  stage.remove_pod("w");
  stage.settle();
  CHECK(ended(stage, PredictionEnd::Deleted) == 1);
}

}  // namespace dhc::test
