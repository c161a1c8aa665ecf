#include <algorithm>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Device = TaintRules::Device;

namespace {

/// Puts the stage's rule under the name that 0.1.0 would have given it, and gives it as it is then.
k8s::DeviceTaintRule under_old_name(Stage& stage) {
  auto rule = *stage.rule();
  stage.remove(k8s::Kind::DeviceTaintRule, rule.meta.name);
  rule.meta.name = old_rule_name(DeviceKey::dra(std::string(kDriver), "node-a", "gpu-0"));
  rule.meta.labels = {{std::string(kManagedByLabel), std::string(kManagedBy)}};
  stage.put(rule);
  return rule;
}

/// The device has recovered, the answer to the rule's removal was lost, and it is bad again.
Stage bad_again_after_a_lost_removal() {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().after = Seconds(1);
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("train-1", Health::Healthy);
  REQUIRE(loses_removal(stage));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  return stage;
}

}  // namespace

TEST_CASE("The taint stands before the pod is evicted, and not a millisecond before the incident opens") {
  auto stage = gpu_stage();
  stage.settle();
  stage.advance(Seconds(60) - Millis(1));
  stage.settle();
  CHECK(deeds(stage).empty());
  stage.advance(Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
  CHECK(stage.verdict("node-a", Reason::Tainted)->device == "gpu.example.com/node-a/gpu-0");
}

TEST_CASE("The eviction waits until the World shows the taint, whatever the answer was") {
  auto stage = gpu_stage();
  stage.settle();
  stage.advance(Seconds(60));
  for (const auto& action : stage.turn()) stage.answer(action);  // accepted, and no watch event yet
  stage.advance(Seconds(20));
  stage.turn();
  CHECK(stage.reasons("train-1") == "WaitingForTaint");
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

TEST_CASE("The rule selects exactly one device, carries our key and is made with a free name") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  const auto* rule = stage.rule();
  REQUIRE(rule != nullptr);
  CHECK(rule->driver == std::string(kDriver));
  CHECK(rule->pool == "node-a");
  CHECK(rule->device == "gpu-0");
  CHECK(rule->taint == k8s::Taint{std::string(kTaintKey), "Unhealthy", "NoSchedule"});
  CHECK(rule->meta.name.starts_with("dhc-node-a-gpu-0-"));
}

TEST_CASE("A rule is made with the node, and the words of the driver") {
  auto stage = gpu_stage();
  stage.report("train-1", Health::Unhealthy, "XID 79");
  stage.settle();
  stage.advance(Seconds(60));
  std::vector<taint::ApplyRule> applied;
  for (const auto& action : stage.turn()) {
    if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) applied.push_back(*apply);
    stage.answer(action);
    stage.show(action);
  }
  REQUIRE(stage.rule() != nullptr);
  REQUIRE_FALSE(applied.empty());
  for (const auto& apply : applied) {
    CHECK(apply.node == "node-a");
    CHECK(apply.said == "XID 79");
  }
}

TEST_CASE("A rule of 0.1.0 stays the device's only one, says once what it stands for, and is removed with it") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  REQUIRE(stage.rule() != nullptr);
  const auto rule = under_old_name(stage);
  CHECK(rule.meta.name.size() == 20);
  const auto before = stage.writes().size();
  stage.restart();
  stage.run_for(minutes(5));
  CHECK(stage.verdict("node-a", Reason::Tainted)->message.contains(rule.meta.name));
  CHECK(std::ranges::count(stage.writes().begin() + static_cast<std::ptrdiff_t>(before), stage.writes().end(),
                           "apply NoSchedule gpu-0") == 1);
  CHECK(k8s::find(stage.rule()->meta.labels, kDeviceLabel) == std::string_view("gpu-0"));
  CHECK(stage.rule()->meta.name == rule.meta.name);
  stage.rule()->meta.annotations.emplace_back("device-health.io/acknowledge", "yes");
  auto acknowledged = *stage.rule();
  acknowledged.meta.annotations.sort();
  stage.put(acknowledged);
  stage.run_for(minutes(1));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.writes().back() == "delete gpu-0");
}

TEST_CASE("A rule of 0.1.0 is left as it is where the policy only observes") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  REQUIRE(stage.rule() != nullptr);
  (void)under_old_name(stage);
  const auto before = stage.writes().size();
  stage.whole_policy().mode_cap = Mode::Observe;
  stage.send_policy();
  stage.restart();
  stage.run_for(minutes(5));
  CHECK(std::ranges::none_of(stage.writes().begin() + static_cast<std::ptrdiff_t>(before), stage.writes().end(),
                             [](const std::string& write) { return write.starts_with("apply"); }));
}

TEST_CASE("An operator's deletion of a rule under the name that 0.1.0 gave it is an acknowledgement") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  REQUIRE(stage.rule() != nullptr);
  const auto rule = under_old_name(stage);
  stage.run_for(minutes(1));
  REQUIRE(stage.rule() != nullptr);
  stage.remove(k8s::Kind::DeviceTaintRule, rule.meta.name);
  stage.run_for(minutes(1));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
}

TEST_CASE("A staged rule has effect None until the API server says what it would do") {
  auto stage = gpu_stage({.device = Device::Staged});
  stage.run_for(Seconds(65));
  CHECK(deeds(stage) == "apply None gpu-0");
  CHECK(stage.reasons("train-1") == "WaitingForTaint");
  auto rule = *stage.rule();
  rule.progress = k8s::EvictionInProgress{rule.generation - 1, "False", "NoEffect", "of an older spec"};
  stage.put(rule);
  stage.run_for(Seconds(1));
  CHECK(deeds(stage) == "apply None gpu-0");
  rule.progress = k8s::EvictionInProgress{rule.generation, "False", "NoEffect", "3 pods would be evicted."};
  stage.put(rule);
  stage.run_for(Seconds(1));
  CHECK(deeds(stage) == "apply None gpu-0, apply NoSchedule gpu-0, evict train-1");
  CHECK(stage.verdict("node-a", Reason::Tainted)->message.find("3 pods would be evicted. (we count 1 that hold it)") !=
        std::string::npos);
}

TEST_CASE("A staged rule becomes NoSchedule after 30 s without a word") {
  auto stage = gpu_stage({.device = Device::Staged});
  stage.run_for(Seconds(60));
  stage.advance(Seconds(30) - Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply None gpu-0");
  stage.advance(Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply None gpu-0, apply NoSchedule gpu-0, evict train-1");
}

TEST_CASE("A rule that nobody has looked at for 30 s says so") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  const auto is_unheeded = [&] {
    return stage.verdict("node-a", Reason::Tainted)->message.find("DRADeviceTaintRules on in every") !=
           std::string::npos;
  };
  stage.advance(Seconds(28));
  stage.settle();
  CHECK(!is_unheeded());
  stage.advance(Seconds(2));
  stage.settle();
  CHECK(is_unheeded());
  auto rule = *stage.rule();
  rule.progress = k8s::EvictionInProgress{rule.generation, "False", "OtherEffect", "the effect is NoSchedule"};
  stage.put(rule);
  stage.run_for(Seconds(1));
  CHECK(!is_unheeded());
}

TEST_CASE("An ambiguous device is never tainted") {
  auto stage = gpu_stage();
  stage.claim("pair", {"gpu-0", "gpu-1"}, "train-1");
  stage.pod_named("train-1").claims = {{"gpu", "pair"}};
  stage.pod_named("train-1").allocated = {
      {"claim:gpu", {{"vendor/x=1", Health::Unhealthy, ""}, {"vendor/x=2", Health::Healthy, ""}}}};
  stage.upsert_pod("train-1");
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage).empty());
  CHECK(stage.reasons("train-1") == "DeviceAmbiguous");
}

TEST_CASE("Somebody else's rule or the driver's own taint is enough") {
  auto stage = gpu_stage();
  stage.slice("node-a", kFourGpus, {"gpu-0"});
  stage.run_for(minutes(2));
  CHECK(deeds(stage) == "evict train-1");
  CHECK(stage.verdict("node-a", Reason::TaintedByOther)->message ==
        "no taint of ours is needed: the driver's taint example.com/bad:NoSchedule");
}

TEST_CASE("Observe mode writes nothing and says what would be done") {
  auto stage = gpu_stage();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage).empty());
  CHECK(stage.reasons("node-a") == "WouldTaint");
  CHECK(stage.reasons("train-1") == "WouldEvict");
}

TEST_CASE("No mode but enforce writes, also when an incident was open before") {
  for (const Mode mode : {Mode::Observe, Mode::Off}) {
    for (const bool node : {false, true}) {
      auto stage = gpu_stage({.node = node, .node_at_least_devices = 1, .node_at_least_percent = 1});
      if (node) {
        stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
      }
      stage.policy().mode = Mode::Observe;
      stage.send_policy();
      stage.run_for(minutes(2));
      stage.policy().mode = mode;
      stage.send_policy();
      stage.run_for(minutes(5));
      CHECK(deeds(stage).empty());
    }
  }
}

TEST_CASE("A pause stops new taints, untainting goes on") {
  auto stage = gpu_stage();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(2));
  CHECK(deeds(stage).empty());
  CHECK(stage.reasons("node-a") == "Paused");
  stage.limits().paused = false;
  stage.send_policy();
  stage.run_for(Seconds(1));
  stage.limits().paused = true;
  stage.send_policy();
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1, delete gpu-0");
}

TEST_CASE("A rule that an operator deletes is not made again until a new incident") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(hours(2), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.reasons("node-a") == "Acknowledged");
  // Healthy for a moment, and bad again: that is another incident.
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(1));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(61));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-0");
}

TEST_CASE("The next incident soon after an operator deleted the rule is tainted at once") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().after = Seconds(1);
  stage.send_policy();
  stage.run_for(Seconds(2));
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(Seconds(1));
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(1));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(2));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-0");
}

TEST_CASE("A rule that an operator deletes before we have seen it is not made again either") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.settle();
  stage.advance(Seconds(60));
  stage.settle();
  // Made and deleted between two turns.
  const auto name = stage.rule()->meta.name;
  stage.restart();
  stage.remove(k8s::Kind::DeviceTaintRule, name);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

TEST_CASE("An operator's removal in the next incident counts, although the answer to our own was lost before") {
  auto stage = bad_again_after_a_lost_removal();
  stage.run_for(minutes(4));
  REQUIRE(stage.rule() != nullptr);
  const auto before = deeds(stage);
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == before);
  CHECK(stage.reasons("node-a") == "Acknowledged");
}

TEST_CASE("A removal whose answer was lost, and that happens late, is no operator's word") {
  auto stage = bad_again_after_a_lost_removal();
  stage.run_for(Seconds(20));
  const auto before = deeds(stage);
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(minutes(2));
  CHECK(deeds(stage) == before + ", apply NoSchedule gpu-0");
}

TEST_CASE("A rule that an operator changes is left as it is, and not forced") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  auto rule = *stage.rule();
  rule.taint.effect = "None";
  stage.put(rule);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.reasons("node-a") == "ChangedByOther Acknowledged");
}

TEST_CASE("A refused apply of another writer's field is a verdict and not a loop") {
  auto stage = gpu_stage();
  stage.settle();
  stage.advance(Seconds(60));
  for (int i = 0; i < 100; ++i) {
    for (const auto& action : stage.turn()) {
      const bool rule = std::holds_alternative<taint::ApplyRule>(action);
      stage.answer(action, rule ? Status(fail(ErrorKind::Contested, "conflict with \"kubectl-edit\"")) : Status());
    }
    stage.advance(Seconds(1));
  }
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-0");
  CHECK(stage.reasons("node-a") == "ChangedByOther");
}

TEST_CASE("An update of our rule that another writer's field refuses is said beside the taint") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().after = Seconds(1);
  stage.send_policy();
  stage.run_for(minutes(11), Seconds(10));
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(1));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  for (int i = 0; i < 5; ++i) {
    for (const auto& action : stage.turn()) {
      const bool rule = std::holds_alternative<taint::ApplyRule>(action);
      stage.answer(action, rule ? Status(fail(ErrorKind::Contested, "conflict with \"kubectl-patch\"")) : Status());
    }
    stage.advance(Seconds(1));
  }
  CHECK(stage.reasons("node-a") == "Tainted ChangedByOther");
}

TEST_CASE("A rule of that name that is not ours is never touched") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  auto rule = *stage.rule();
  auto other = gpu_stage();
  rule.meta.labels.clear();
  rule.taint.effect = "None";
  other.put(rule);
  other.run_for(minutes(2));
  CHECK(deeds(other).empty());
  CHECK(other.reasons("node-a") == "ChangedByOther");
}

TEST_CASE("A server that loses the kind has not lost the rules") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  const auto rule = *stage.rule();
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.reasons("node-a") == "TaintUnsupported");
  stage.deliver(k8s::Delivery(k8s::Snapshot{
      .kind = k8s::Kind::DeviceTaintRule, .objects = {rule}, .served = true, .api_version = "resource.k8s.io/v1"}));
  stage.run_for(minutes(1));
  CHECK(stage.reasons("node-a") == "Tainted");
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

namespace {

/// A node with 100 devices, of which 40 are held and Unhealthy.
Stage many_bad() {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.send_policy();
  stage.node("node-a", 0);
  std::vector<std::string> devices;
  for (int i = 0; i < 100; ++i) devices.push_back("gpu-" + std::to_string(i));
  stage.slice("node-a", devices);
  for (int i = 0; i < 40; ++i) {
    const auto n = std::to_string(i);
    stage.claim("c-" + n, {"gpu-" + n}, "p-" + n);
    stage.pod({.name = "p-" + n, .owner = "Job/j" + n, .health = Health::Unhealthy, .claim = "c-" + n});
  }
  return stage;
}

}  // namespace

TEST_CASE("taints.perMinute bounds new taints, from a bucket that is full at the start") {
  auto stage = many_bad();
  stage.policy().evict.reset();
  stage.limits() = {.taints_per_minute = 10, .brake_percent = 100};
  stage.send_policy();
  const auto rules = [&] { return std::ranges::count(deeds(stage), ',') + 1; };
  stage.run_for(Seconds(61));
  CHECK(rules() == 10);
  CHECK(stage.verdict("node-a", Reason::RateLimited)->message == "taints.perMinute is 10, and they are used up");
  stage.run_for(Seconds(6));
  CHECK(rules() == 11);
  stage.run_for(minutes(10));
  CHECK(rules() == 40);
  CHECK(stage.verdict("node-a", Reason::RateLimited) == nullptr);
}

TEST_CASE("The brake holds before a single taint") {
  auto stage = many_bad();
  stage.run_for(minutes(4), Seconds(10));
  CHECK(deeds(stage).empty());
  CHECK(stage.controller().stats().brakes_engaged == 2);
}

TEST_CASE("Nothing is written while nothing changes") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(3));
  const auto before = stage.writes().size();
  stage.run_for(hours(3), Seconds(30));
  CHECK(stage.writes().size() == before);
}

}  // namespace dhc::test
