// Tolerations in a claim: the scheduler hands a tainted device to a pod whose claim tolerates the taint.
#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::Toleration;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

const Toleration kEverything{.key = {}, .value = {}, .effect = {}, .exists = true};
const Toleration kOurs{.key = std::string(kTaintKey), .value = {}, .effect = "NoSchedule", .exists = true};

void tolerate(Stage& stage, const std::vector<Toleration>& tolerations, const std::string& claim = "c",
              const std::string& pod = "train-1", const std::string& device = "gpu-0") {
  stage.claim(claim, {device}, pod).results.front().tolerations = tolerations;
  stage.upsert_claim(claim);
}

/// gpu-0 is tainted by its driver, with a pod whose claim tolerates that.
Stage tolerant(const std::vector<Toleration>& tolerations) {
  auto stage = held_device();
  tolerate(stage, tolerations);
  publish_taints(stage, {.first = {xid("79")}});
  return stage;
}

}  // namespace

TEST_CASE("A pod whose claim tolerates the driver's named taint stays, and its condition says what is wrong") {
  Toleration one{.key = std::string(kXid), .value = "79", .effect = {}, .exists = false};
  SUBCASE("of this value") {}
  SUBCASE("of this effect") { one.effect = "NoSchedule"; }
  SUBCASE("of any value") { one = {.key = std::string(kXid), .value = {}, .effect = {}, .exists = true}; }
  SUBCASE("everything") { one = kEverything; }
  SUBCASE("ours alone") { one = kOurs; }
  auto stage = tolerant({one});
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.reasons("train-1") == "TaintTolerated");
  CHECK(stage.conditions().back().wanted->status);
}

TEST_CASE("A claim that tolerates something else keeps no pod") {
  Toleration one{.key = std::string(kXid), .value = "48", .effect = {}, .exists = false};
  SUBCASE("another value") {}
  SUBCASE("another effect") { one = {.key = std::string(kXid), .value = "79", .effect = "NoExecute", .exists = false}; }
  SUBCASE("another key") { one = {.key = "gpu.example.com/lost", .value = {}, .effect = {}, .exists = true}; }
  SUBCASE("no key and no Exists") { one = {.key = {}, .value = "79", .effect = {}, .exists = false}; }
  auto stage = tolerant({one});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("Of two named taints that stand both must be tolerated") {
  auto stage = tolerant({{.key = std::string(kXid), .value = {}, .effect = {}, .exists = true}});
  const k8s::Taint lost{.key = "gpu.example.com/lost", .value = {}, .effect = "NoSchedule"};
  publish_taints(stage, {.first = {xid("79"), lost}});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("An allocation that only observes the device tolerates nothing for the pod") {
  auto stage = tolerant({});
  auto& claim = stage.claim("c", {"gpu-0", "gpu-0"}, "train-1");
  claim.results.back().admin_access = true;
  claim.results.back().tolerations = {kEverything};
  stage.upsert_claim("c");
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A pod whose claim tolerates our taint stays also where the kubelet calls the device Unhealthy") {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unhealthy, .claim = "c"});
  tolerate(stage, {kOurs});
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.reasons("train-1") == "TaintTolerated");
  CHECK(stage.rule() != nullptr);  // it is about everybody else
}

TEST_CASE("A taint that the replacement tolerates does not keep it off the device") {
  Stage stage;
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {.first = {{.key = "maintenance", .value = {}, .effect = "NoSchedule"}}});
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unhealthy, .claim = "c"});
  tolerate(stage, {{.key = "maintenance", .value = {}, .effect = {}, .exists = true}});
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.reasons("train-1") == "DeviceStillSchedulable");
  tolerate(stage, {});
  CHECK(stage.run_for(Seconds(2)) == Names{"train-1"});
}

TEST_CASE("Pods whose claims tolerate the taint take no other's evictions of the day") {
  auto stage = silent_driver();
  stage.hold_caps();
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  for (int i = 0; i < 5; ++i) {
    const auto name = "greedy-" + std::to_string(i);
    stage.pod({.name = name, .owner = "ReplicaSet/" + name, .health = Health::Unknown, .claim = "claim-" + name});
    tolerate(stage, {kEverything}, "claim-" + name, name);
    CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
    stage.remove_pod(name);
  }
  stage.pod({.name = "train-2", .owner = "ReplicaSet/web", .health = Health::Unknown, .claim = "c2"});
  stage.claim("c2", {"gpu-1"}, "train-2");
  publish_taints(stage, {.first = {xid("79")}, .second = {xid("79")}});
  CHECK(stage.run_for(minutes(20), Seconds(10)) == Names{"train-2"});
}

}  // namespace dhc::test
