// Tolerations in a claim: the scheduler hands a tainted device to a pod whose claim tolerates the taint.
#include <algorithm>

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

/// The kubelet reports gpu-0, whose pod's claim tolerates this; the policy taints and evicts.
Stage reported(const std::vector<Toleration>& tolerations, const std::vector<k8s::Taint>& of_driver = {}) {
  Stage stage;
  stage.policy().taint = TaintRules{.node = true, .node_at_least_devices = 1, .node_at_least_percent = 1};
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {.first = of_driver});
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unhealthy, .claim = "c"});
  tolerate(stage, tolerations);
  return stage;
}

/// The same, and its Job gets retries back.
Stage credited(const std::vector<Toleration>& tolerations) {
  auto stage = reported(tolerations);
  stage.policy().job_retry = JobRetryRules{.take_back = true};
  stage.send_policy();
  stage.job_named("t").backoff_limit = 0;
  stage.upsert_job("t");
  return stage;
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
  auto stage = reported({kOurs});
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.reasons("train-1") == "TaintTolerated");
  CHECK(stage.rule() != nullptr);  // it is about everybody else
}

TEST_CASE("The driver's own taint keeps a replacement off the device unless the claim tolerates that, too") {
  const Toleration maintenance{.key = "maintenance", .value = {}, .effect = {}, .exists = true};
  std::vector<Toleration> tolerations = {kOurs};
  std::string effect = "NoSchedule";
  bool stays = false;
  SUBCASE("which it does not") {}
  SUBCASE("which it does not: NoExecute") { effect = "NoExecute"; }
  SUBCASE("which keeps nobody off") {
    effect = "None";
    stays = true;
  }
  SUBCASE("which it does") {
    tolerations.push_back(maintenance);
    stays = true;
  }
  auto stage = reported(tolerations, {{.key = "maintenance", .value = {}, .effect = effect}});
  CHECK(stage.run_for(minutes(2)) == (stays ? Names{} : Names{"train-1"}));
  if (stays) CHECK(stage.reasons("train-1") == "TaintTolerated");
}

TEST_CASE("A claim that tolerates ours alone is not let onto what the driver has tainted by name") {
  auto stage = tolerant({kOurs});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("Where the node is tainted the pod's tolerations count, and not its claim's") {
  std::vector<Toleration> of_claim;
  std::vector<Toleration> of_pod;
  SUBCASE("the claim's alone") { of_claim = {kOurs}; }
  SUBCASE("neither") {}
  SUBCASE("the pod's alone") { of_pod = {kOurs}; }
  SUBCASE("both") {
    of_claim = {kOurs};
    of_pod = {kOurs};
  }
  auto stage = reported(of_claim);
  stage.policy().evict->no_replacement_wait = Seconds(0);  // the only node is tainted
  stage.send_policy();
  stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = k8s::Kind::DeviceTaintRule, .objects = {}, .served = false}));
  k8s::SchedulingTerms terms;
  terms.tolerations = of_pod;
  stage.pod_named("train-1").scheduling = k8s::Shared(terms);
  stage.upsert_pod("train-1");
  CHECK(stage.run_for(minutes(2)) == (of_pod.empty() ? Names{"train-1"} : Names{}));
  CHECK(stage.writes().end() != std::ranges::find(stage.writes(), "taint node-a"));
  if (of_pod.empty()) return;
  CHECK(stage.reasons("train-1") == "TaintTolerated");
  CHECK(stage.verdict("train-1", Reason::TaintTolerated)->message.starts_with("the pod tolerates the node's taint "));
}

TEST_CASE("Where nothing of ours will stand on the device, no toleration is what holds the pod") {
  auto stage = reported({kOurs});
  stage.policy().taint.reset();
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.reasons("train-1") == "DeviceStillSchedulable");
}

TEST_CASE("A policy that evicts without a taint evicts whose claim tolerates it, too, once in an hour") {
  for (const bool untainted : {true, false}) {
    auto stage = reported({kOurs});
    stage.policy().evict->untainted = untainted;
    stage.send_policy();
    CHECK(stage.run_for(minutes(2)) == (untainted ? Names{"train-1"} : Names{}));
    if (!untainted) continue;
    stage.remove_pod("train-1");
    stage.pod({.name = "train-2", .owner = "Job/t", .health = Health::Unhealthy, .claim = "c2"});
    tolerate(stage, {kOurs}, "c2", "train-2");
    CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
    CHECK(stage.reasons("train-2") == "ReplacementOnSameDevice");
  }
}

TEST_CASE("A pod that stays because its claim tolerates the taint costs its Job no retry, and gets none") {
  auto evicted = credited({});
  CHECK(evicted.run_for(minutes(2)) == Names{"train-1"});
  CHECK(evicted.patches().size() == 1);
  auto stage = credited({kOurs});
  CHECK(stage.run_for(minutes(20), Seconds(5)).empty());
  CHECK(stage.patches().empty());
  CHECK(stage.reasons("train-1") == "TaintTolerated");
}

TEST_CASE("The retry of a pod that stays after all is taken back as any other, once its device is healthy") {
  auto stage = credited({});
  stage.policy().evict->after = std::chrono::hours(1);
  stage.send_policy();
  stage.run_for(minutes(2));
  REQUIRE(stage.job_named("t").backoff_limit == 1);
  SUBCASE("its claim tolerates the taint now") { tolerate(stage, {kOurs}); }
  SUBCASE("it has opted out") {
    stage.pod_named("train-1").meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.upsert_pod("train-1");
  }
  // The pod may still die of the device: until then the retry is its.
  CHECK(stage.run_for(std::chrono::hours(2), Seconds(30)).empty());
  CHECK(stage.job_named("t").backoff_limit == 1);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(9), Seconds(5));
  CHECK(stage.job_named("t").backoff_limit == 1);
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.job_named("t").backoff_limit == 0);
}

TEST_CASE("The Job of a pod that stayed and died of its device gets the retry back then") {
  auto stage = credited({kOurs});
  stage.run_for(minutes(5), Seconds(5));
  REQUIRE(stage.patches().empty());
  auto& pod = stage.pod_named("train-1");
  pod.phase = k8s::PodPhase::Failed;
  pod.exits = {{"main", 1}};
  stage.upsert_pod("train-1");
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.job_named("t").backoff_limit == 1);
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
