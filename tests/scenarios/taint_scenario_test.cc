// A bad DRA device is tainted, then its pod is evicted and comes back elsewhere: from watch bytes to requests, in
// virtual time.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// Breaks the device of `pod` and expects: one rule, then one eviction, and no pod on that device for ten minutes.
void expect_taint_then_eviction(TaintWorld& world, const std::string& prefix) {
  const auto pods = world.live(prefix);
  REQUIRE_FALSE(pods.empty());
  const auto& pod = pods.front();
  const auto uid = world.uid(pod);
  const auto device = world.device_of(pod);
  REQUIRE(world.steps().empty());
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  CHECK(world.evictions() == Words{"default/" + pod});
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(text(world.rule_for(device), {"spec", "taint", "key"}) == "device-health.io/unhealthy");
  CHECK(world.rule_count() == 1);
  world.run_for(10min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  const auto after = world.live(prefix);
  REQUIRE(after.size() == pods.size());
  for (const auto& name : after) {
    CHECK(world.uid(name) != uid);
    CHECK(world.pod(name)["status"]["phase"] == "Running");
    CHECK(world.device_of(name) != device);
  }
  CHECK(world.says(device, "Tainted"));
}

}  // namespace

TEST_CASE("a Deployment's pod on a bad device: the rule, then the eviction, and the replacement elsewhere") {
  TaintWorld world;
  world.cluster.create_deployment("default", "infer", 2, TaintWorld::dra_pod());
  world.run_for(10s);
  expect_taint_then_eviction(world, "infer-");
}

TEST_CASE("a StatefulSet's pod comes back under its name on another device") {
  TaintWorld world;
  world.cluster.create_stateful_set("default", "s", 2, TaintWorld::dra_pod());
  world.run_for(10s);
  expect_taint_then_eviction(world, "s-");
}

TEST_CASE("a Job's pod comes back on another device, and the Job lives") {
  TaintWorld world;
  JobShape job;
  job.name = "train";
  job.parallelism = 2;
  job.completions = 2;
  job.shape = TaintWorld::dra_pod();
  world.cluster.create_job(job);
  world.run_for(10s);
  expect_taint_then_eviction(world, "train-");
  CHECK(condition_status(world.object(Res::Jobs, "train"), "Failed").empty());
}

TEST_CASE("the pod of the only device that is left waits: it is not put back on the bad one") {
  TaintWorld world;
  world.cluster.cordon("node-b", true);
  world.cluster.create_deployment("default", "infer", 4, TaintWorld::dra_pod());
  world.run_for(10s);
  const auto pod = world.live("infer-").front();
  const auto device = world.device_of(pod);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10min);
  for (const auto& name : world.live("infer-")) {
    if (name != pod) CHECK(world.device_of(name) != device);
  }
  CHECK(world.evictions().size() <= 1);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a rule that the server does not show yet holds the eviction back") {
  TaintWorld world;
  const auto device = world.start_one();
  world.cluster.faults().add(
      {.method = k8s::Method::Patch, .path_contains = "devicetaintrules", .count = 3, .status = 503});
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(62s);
  CHECK(world.rule_for(device).is_null());
  CHECK(world.evictions().empty());
  CHECK(world.says_of_pod("s-0", "WaitingForTaint"));
  world.run_for(10min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}

TEST_CASE("a server that refuses the rule for good keeps the pod where it is, and says why") {
  TaintWorld world;
  const auto device = world.start_one();
  world.cluster.settings().denials = {{"create", "devicetaintrules"}, {"patch", "devicetaintrules"}};
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10min);
  CHECK(world.evictions().empty());
  CHECK(world.says(device, "Refused"));
  const auto tries = world.write_count();
  CHECK(tries < 20);
  world.cluster.settings().denials.clear();
  world.run_for(30min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}

TEST_CASE("an apply whose answer was lost makes one rule and no second one") {
  TaintWorld world;
  const auto device = world.start_one();
  world.cluster.faults().add({.method = k8s::Method::Patch,
                              .path_contains = "devicetaintrules",
                              .count = 1,
                              .status = 504,
                              .handled_first = true});
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10min);
  CHECK(world.rule_count() == 1);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.evictions().size() == 1);
  CHECK(world.rule_for(device)["metadata"]["generation"] == 1);
}

TEST_CASE(
    "a staged taint is None until the server has said what it would do, then NoSchedule, then comes the eviction") {
  TaintWorld world;
  world.policy().taint->device = TaintRules::Device::Staged;
  world.send_policy();
  world.cluster.lags().rule_condition = 10s;
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_until_tainted(device);
  CHECK(world.effect_of(device) == "None");
  world.run_for(9s);
  CHECK(world.effect_of(device) == "None");
  CHECK(world.says(device, "StagedTaint"));
  CHECK(world.evictions().empty());
  world.run_for(5s);
  CHECK(world.effect_of(device) == "NoSchedule");
  world.run_for(2min);
  CHECK(world.steps() == Words{"PATCH rule", "PATCH rule", "evict"});
}

TEST_CASE("a staged taint waits at most 30 seconds for a server that says nothing") {
  TaintWorld world;
  world.policy().taint->device = TaintRules::Device::Staged;
  world.send_policy();
  world.cluster.lags().rule_condition = 1h;
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_until_tainted(device);
  world.run_for(28s);
  CHECK(world.effect_of(device) == "None");
  world.run_for(5s);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a restart at any second of the story: one rule, one eviction, no other write to the rule") {
  for (int after = 0; after < 100; after += 3) {
    CAPTURE(after);
    TaintWorld world;
    const auto device = world.start_one();
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(Seconds(after));
    world.restart_controller();
    world.run_for(5min);
    CHECK(world.steps() == Words{"PATCH rule", "evict"});
    CHECK(world.effect_of(device) == "NoSchedule");
    CHECK(world.device_of("s-0") != device);
  }
}

TEST_CASE("a restart at any moment of a staged taint ends the same") {
  for (int after = 58; after < 75; ++after) {
    CAPTURE(after);
    TaintWorld world;
    world.policy().taint->device = TaintRules::Device::Staged;
    world.send_policy();
    world.cluster.lags().rule_condition = 4s;
    const auto device = world.start_one();
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(Seconds(after));
    world.restart_controller();
    world.run_for(5min);
    CHECK(world.steps() == Words{"PATCH rule", "PATCH rule", "evict"});
    CHECK(world.effect_of(device) == "NoSchedule");
  }
}

TEST_CASE("a driver that restarts and publishes under new names does not cost the device its rule") {
  TaintWorld world;
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  REQUIRE(world.steps() == Words{"PATCH rule", "evict"});
  const auto uid = uid_of(world.rule_for(device));
  const auto node = device.substr(device.find('/') + 1, device.rfind('/') - device.find('/') - 1);
  world.cluster.kill_driver(node, TaintWorld::kDriver);
  world.run_for(10min);
  world.cluster.start_driver(node, TaintWorld::kDriver);
  world.run_for(10min);
  CHECK(uid_of(world.rule_for(device)) == uid);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}
