// What a list has and nobody can read is still there.
#include <doctest/doctest.h>

#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

namespace {

k8s::Unreadable unreadable(k8s::Kind kind, const k8s::Meta& meta) {
  return {.kind = kind, .ns = meta.ns, .name = meta.name, .uid = meta.uid, .why = "a field"};
}

/// A list of a kind in which this one object could not be read.
void list_without(Stage& stage, k8s::Kind kind, const k8s::Meta& meta, bool names_uid = true) {
  auto bad = unreadable(kind, meta);
  if (!names_uid) bad.uid.clear();
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = kind, .objects = {}, .unreadable = {bad}}));
  stage.deliver(k8s::Delivery(bad));
}

}  // namespace

TEST_CASE("Our rule that a list cannot read is nobody's acknowledgement, and is not made again") {
  for (const bool names_uid : {true, false}) {
    CAPTURE(names_uid);
    auto stage = gpu_stage();
    stage.policy().evict.reset();
    stage.send_policy();
    stage.run_for(minutes(2), Seconds(10));
    REQUIRE(stage.rule() != nullptr);
    const auto before = deeds(stage);
    list_without(stage, k8s::Kind::DeviceTaintRule, stage.rule()->meta, names_uid);
    stage.run_for(minutes(5), Seconds(10));
    CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
    CHECK(stage.verdict("node-a", Reason::Tainted) != nullptr);
    CHECK(deeds(stage) == before);
    // A list that does not have it at all is an operator's word.
    stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}}));
    stage.run_for(Seconds(10));
    CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
  }
}

TEST_CASE("A pod that a list cannot read is kept, and nothing is decided on it") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(30));
  list_without(stage, k8s::Kind::Pod, stage.pod_named("train-1").meta);
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.controller().stats().pods == 1);
  stage.upsert_pod("train-1");
  CHECK(stage.run_for(minutes(2), Seconds(1)) == std::vector<std::string>{"train-1"});
}

TEST_CASE("A pod that its list names as unreadable is doubted by that word alone") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(30));
  const auto bad = unreadable(k8s::Kind::Pod, stage.pod_named("train-1").meta);
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::Pod, .objects = {}, .unreadable = {bad}}));
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.verdict("train-1", Reason::UnreadablePod) != nullptr);
}

TEST_CASE("Where a list has an object without a name, nothing of the kind is taken as removed") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(10));
  REQUIRE(stage.rule() != nullptr);
  list_without(stage, k8s::Kind::DeviceTaintRule, {});
  list_without(stage, k8s::Kind::Pod, {});
  stage.run_for(minutes(1), Seconds(10));
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  CHECK(stage.verdict("node-a", Reason::Tainted) != nullptr);
  CHECK(stage.controller().stats().pods == 1);
}

TEST_CASE("What a list can read counts as it reads it, also beside an object without a name") {
  const k8s::UnreadableNames any({k8s::Unreadable{}});
  Inventory inventory;
  k8s::DeviceTaintRule rule;
  rule.meta.name = "rule";
  rule.meta.uid = "uid-rule";
  inventory.upsert(rule);
  rule.meta.annotations = {{"device-health.io/acknowledge", "fan replaced"}};
  inventory.replace_rules({rule}, "resource.k8s.io/v1", false, any);
  REQUIRE(inventory.rule_named("rule") != nullptr);
  CHECK(inventory.rule_named("rule")->meta.annotations == rule.meta.annotations);

  k8s::ResourceSlice slice;
  slice.meta.uid = "uid-slice";
  slice.driver = "d";
  slice.pool = "p";
  slice.generation = 1;
  slice.devices = {{.name = "gpu-0", .taints = {}}};
  inventory.upsert(slice);
  slice.devices.front().taints = {{"d/broken", "", "NoSchedule"}};
  inventory.replace_slices({slice}, any);
  CHECK(inventory.tainted_by_driver(DeviceKey::dra("d", "p", "gpu-0")) == true);
}

TEST_CASE("A pod deleted and one made anew under its name are not what a list could not read") {
  auto stage = gpu_stage();
  stage.settle();
  auto other = stage.pod_named("train-1").meta;
  other.uid = "uid-of-another";
  list_without(stage, k8s::Kind::Pod, other);
  stage.settle();
  CHECK(stage.controller().stats().pods == 0);
}

TEST_CASE("A claim, a node, a slice, a Namespace and a Job that lists cannot read stand as they were") {
  auto stage = gpu_stage();
  stage.settle();
  for (const auto kind :
       {k8s::Kind::ResourceClaim, k8s::Kind::Node, k8s::Kind::ResourceSlice, k8s::Kind::Namespace, k8s::Kind::Job}) {
    k8s::Meta meta;
    switch (kind) {
      case k8s::Kind::ResourceClaim:
        meta = stage.claim("train-gpu", {"gpu-0"}, "train-1").meta;
        break;
      case k8s::Kind::Node:
        meta = stage.node_named("node-a").meta;
        break;
      case k8s::Kind::ResourceSlice:
        meta.name = "slice-node-a";
        meta.uid = "uid-slice-node-a";
        break;
      case k8s::Kind::Namespace:
        meta.name = "default";
        meta.uid = "uid-ns";
        break;
      default:
        meta = stage.job_named("train").meta;
        break;
    }
    list_without(stage, kind, meta);
  }
  CHECK(stage.run_for(minutes(2)) == std::vector<std::string>{"train-1"});
}

}  // namespace dhc::test
