#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/history/device_record.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Tainted and evicted, the pod gone: nobody reports on the device any more.
Stage emptied(const RecoverRules& recover = {.hold = hours(24)}) {
  auto stage = gpu_stage();
  stage.policy().recover = recover;
  stage.send_policy();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.settle();
  return stage;
}

/// A pod has the device for so long, and then it breaks.
void break_after(Stage& stage, const std::string& pod, Millis time) {
  stage.claim(pod + "-gpu", {"gpu-0"}, pod);
  stage.pod({.name = pod, .owner = "Job/" + pod, .health = Health::Healthy, .claim = pod + "-gpu"});
  stage.run_for(time, Seconds(30));
  stage.report(pod, Health::Unhealthy, "Xid 79");
}

/// The device breaks again under another pod.
void break_again(Stage& stage, const std::string& pod) {
  stage.claim(pod + "-gpu", {"gpu-0"}, pod);
  stage.pod({.name = pod, .owner = "Job/" + pod, .health = Health::Unhealthy, .claim = pod + "-gpu"});
}

std::size_t rules_made(const Stage& stage) {
  std::size_t count = 0;
  for (const auto& word : stage.writes()) {
    if (word == "apply NoSchedule gpu-0") ++count;
  }
  return count;
}

void uuid_slice(Stage& stage, const std::string& uuid, std::vector<k8s::Taint> taints = {}) {
  publish(stage, {{.name = "gpu-0", .taints = std::move(taints), .attributes = {{"uuid", uuid}}}, {"gpu-1", {}, {}}});
}

}  // namespace

TEST_CASE("Without evidence the taint stands for the hold, and not a millisecond longer") {
  auto stage = emptied();
  stage.run_for(hours(24) - Seconds(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
  CHECK(stage.reasons("node-a") == "Tainted");
  stage.advance(Seconds(1) - Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
  stage.advance(Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1, delete gpu-0");
  CHECK(stage.reasons("node-a") == "Untainted OnProbation");
}

TEST_CASE("Then Keep waits for an operator") {
  auto stage = emptied({.probation = false});
  stage.run_for(hours(24 * 30), hours(1));
  CHECK(stage.reasons("node-a") == "Tainted");
  auto rule = *stage.rule();
  rule.meta.annotations.insert(rule.meta.annotations.begin(), {std::string(kAcknowledgeAnnotation), "replaced fan"});
  stage.put(rule);
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1, delete gpu-0");
}

TEST_CASE("One report on probation is an incident at once, and doubles the hold") {
  auto stage = emptied();
  stage.run_for(hours(24), minutes(10));
  REQUIRE(stage.rule() == nullptr);
  stage.run_for(hours(23), minutes(10));
  break_again(stage, "train-2");
  stage.settle();
  CHECK(rules_made(stage) == 2);
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-2", "train-2-gpu");
  stage.run_for(hours(48) - minutes(2), minutes(1));
  CHECK(stage.rule() != nullptr);
  stage.run_for(minutes(3));
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("After probation a report needs its window again") {
  auto stage = emptied();
  stage.run_for(hours(49), minutes(10));
  break_again(stage, "train-2");
  stage.run_for(Seconds(59));
  CHECK(rules_made(stage) == 1);
  stage.run_for(Seconds(1));
  CHECK(rules_made(stage) == 2);
}

TEST_CASE("The hold never exceeds seven days") {
  DeviceHistory past;
  past.count = 1;
  CHECK(hold_of(past, {.hold = hours(24)}) == hours(24));
  past.count = 3;
  CHECK(hold_of(past, {.hold = hours(24)}) == hours(96));
  past.count = 1000;
  CHECK(hold_of(past, {.hold = hours(24)}) == hours(168));
}

TEST_CASE("A holder that reports Healthy for healthyFor ends the incident, to the millisecond") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("train-1", Health::Healthy);
  stage.settle();
  stage.advance(minutes(10) - Millis(1));
  stage.settle();
  CHECK(stage.rule() != nullptr);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::Untainted)->message == "a pod that holds it has reported Healthy for 10 min");
}

TEST_CASE("Unknown interrupts the evidence and is no evidence itself") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  for (int i = 0; i < 6; ++i) {
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(9), Seconds(30));
    stage.report("train-1", Health::Unknown);
    stage.run_for(minutes(9), Seconds(30));
  }
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A device that flaps is tainted all the time, and each break counts") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 100;
  stage.send_policy();
  stage.run_for(Seconds(61));
  for (int i = 0; i < 4; ++i) {
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(5), Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(minutes(2), Seconds(30));
    CHECK(stage.rule() != nullptr);
  }
  CHECK(deeds(stage).find("delete") == std::string::npos);
  // A break within healthyFor of the one before is the same.
  CHECK(k8s::find(stage.rule()->meta.annotations, kIncidentsAnnotation) == std::string_view("3"));
}

TEST_CASE("A device that no taint of ours keeps pods off is never quarantined: its incident ends by evidence") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.policy().taint.reset();
  stage.policy().recover.quarantine_above = 1;
  stage.send_policy();
  stage.run_for(Seconds(61));
  for (int i = 0; i < 4; ++i) {
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(11), Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(minutes(2), Seconds(30));
  }
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(30));
  const auto content = parse_state(stage.state_text());
  REQUIRE(content.records.size() == 1);
  CHECK(content.records.front().past.count > 2);
  CHECK_FALSE(content.records.front().past.is_lemon);
  CHECK_FALSE(content.records.front().is_open());
}

TEST_CASE("Too many incidents quarantine the device until an operator acknowledges") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 2;
  stage.send_policy();
  stage.run_for(Seconds(61));
  for (int i = 0; i < 2; ++i) {
    stage.run_for(minutes(10), Seconds(30));
    stage.report("train-1", Health::Healthy);
    stage.run_for(Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(61));
  }
  CHECK(stage.verdict("node-a", Reason::Quarantined) != nullptr);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(24 * 60), hours(1));
  CHECK(stage.rule() != nullptr);
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.settle();
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("An acknowledgement ahead of the clock ends no incident before its time has come") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  REQUIRE(stage.rule() != nullptr);
  const auto annotate = [&](WallTime time) {
    auto node = stage.node_named("node-a");
    node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(time)}};
    stage.put(node);
  };
  annotate(stage.now().wall + hours(24 * 365));
  stage.run_for(hours(5), minutes(1));
  CHECK(stage.rule() != nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused) != nullptr);
  annotate(stage.now().wall);
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::AnnotationRefused) == nullptr);
}

TEST_CASE("The driver's own taint that goes away is evidence, but not while its slices are gone") {
  auto stage = emptied();
  stage.slice("node-a", kFourGpus, {"gpu-0"});
  stage.run_for(hours(48), minutes(10));  // the driver says bad: the hold does not run
  CHECK(stage.rule() != nullptr);
  stage.slice("node-a", kFourGpus);
  stage.settle();
  stage.advance(minutes(10) - Millis(1));
  stage.settle();
  CHECK(stage.rule() != nullptr);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::Untainted)->message == "its driver's own taint has been gone for 10 min");
}

TEST_CASE("A driver that comes back without its taint has forgotten it: that is no evidence") {
  auto stage = emptied();
  stage.slice("node-a", kFourGpus, {"gpu-0"});
  stage.run_for(hours(1), minutes(10));
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  stage.run_for(minutes(1));
  stage.slice("node-a", kFourGpus);
  stage.run_for(hours(23), minutes(10));
  CHECK(stage.rule() != nullptr);
  stage.run_for(hours(2), minutes(10));  // the hold, counted from the driver's last word
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("Another attribute is no other card") {
  auto stage = gpu_stage();
  uuid_slice(stage, "GPU-1");
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.policy().recover.identity_attribute = "example.com/serial";
  stage.send_policy();
  stage.run_for(hours(1), minutes(10));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A policy that does not taint does not take over an incident of one that does") {
  auto stage = gpu_stage();
  auto other = stage.policy();
  other.name = "catch-all";
  other.priority = -1;
  other.taint.reset();
  stage.policy().match.message = MessagePattern::compile("Xid 79").value();
  stage.policy().evict.reset();
  other.evict.reset();
  stage.whole_policy().policies.push_back(other);
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("train-1", Health::Unhealthy, "GPU is lost");
  stage.run_for(hours(1), minutes(10));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A device that recovered long after a restart needs its window again") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(70));
  stage.restart();
  stage.run_for(minutes(1));
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(20), Seconds(30));
  CHECK(stage.rule() == nullptr);
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(hours(24 * 30), hours(6));
  break_again(stage, "train-2");
  stage.run_for(Seconds(59));
  CHECK(rules_made(stage) == 1);
}

TEST_CASE("Another card in the place starts clean") {
  auto stage = gpu_stage();
  uuid_slice(stage, "GPU-1");
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(5));
  uuid_slice(stage, "GPU-2");
  stage.run_for(Seconds(1));
  CHECK(stage.rule() == nullptr);
  break_again(stage, "train-2");
  stage.run_for(Seconds(61));
  CHECK(k8s::find(stage.rule()->meta.annotations, kIncidentsAnnotation) == std::string_view("1"));
  // The old card in another machine brings its history along.
  drop_pod(stage, "train-2", "train-2-gpu");
  uuid_slice(stage, "GPU-1");
  stage.run_for(Seconds(1));
  break_again(stage, "train-3");
  stage.run_for(Seconds(61));
  CHECK(k8s::find(stage.rule()->meta.annotations, kIncidentsAnnotation) == std::string_view("2"));
}

TEST_CASE("Incidents close to each other make a lemon, the same number far apart does not") {
  for (const bool close : {true, false}) {
    auto stage = emptied({.hold = minutes(1), .half_life = hours(1), .quarantine_above = 2});
    for (const std::string pod : {"train-2", "train-3"}) {
      stage.run_for(close ? minutes(10) : hours(5), minutes(1));
      CHECK(stage.verdict("node-a", Reason::Quarantined) == nullptr);
      break_after(stage, pod, minutes(11));
      stage.run_for(Seconds(61));
      CHECK(stage.rule() != nullptr);
      drop_pod(stage, pod, pod + "-gpu");
      stage.run_for(Seconds(5));
    }
    CAPTURE(close);
    CHECK((stage.verdict("node-a", Reason::Quarantined) != nullptr) == close);
  }
}

TEST_CASE("The penalty halves with every halfLife") {
  DeviceHistory past;
  past.penalty = 4;
  past.penalty_at = WallTime(hours(1000));
  const RecoverRules rules{.half_life = hours(10)};
  CHECK(penalty_of(past, rules, past.penalty_at) == doctest::Approx(4));
  CHECK(penalty_of(past, rules, past.penalty_at + hours(10)) == doctest::Approx(2));
  CHECK(penalty_of(past, rules, past.penalty_at + hours(30)) == doctest::Approx(0.5));
}

TEST_CASE("The rule of a device that nobody publishes is collected after a day, or a week if its node stands") {
  auto stage = emptied({.probation = false});
  Millis grace = hours(24 * 7);
  SUBCASE("its driver is gone") { stage.remove(k8s::Kind::ResourceSlice, "slice-node-a"); }
  SUBCASE("its driver is gone, and we begin anew") {
    stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
    stage.restart();
  }
  SUBCASE("its driver publishes it no more") { stage.slice("node-a", {"gpu-1", "gpu-2", "gpu-3"}); }
  SUBCASE("its node is gone too") {
    stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
    stage.remove(k8s::Kind::Node, "node-a");
    grace = hours(24);
  }
  stage.run_for(grace - minutes(1), minutes(10));
  CHECK(stage.rule() != nullptr);
  stage.run_for(minutes(2));
  CHECK(stage.rule() == nullptr);
  // Keep is kept: what turns up again is tainted again.
  stage.node("node-a", 0);
  stage.slice("node-a", kFourGpus);
  stage.run_for(Seconds(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A policy that no longer taints takes its taints back, one that is gone does not") {
  auto stage = emptied();
  const auto kept = stage.policy();
  stage.policy().name = "renamed";
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(stage.rule() != nullptr);
  stage.policy() = kept;
  stage.policy().taint.reset();
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(stage.rule() == nullptr);
}

}  // namespace dhc::test
