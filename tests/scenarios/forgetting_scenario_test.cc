// A driver or plugin that begins anew calls every device healthy: that is no repair. What ends such an incident, and
// when.
#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Drivers;
using dhc::test::node_in;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

TEST_CASE("a holder's Healthy after the driver's restart ends no incident: the hold does, and then on probation") {
  Drivers world;
  const auto device = world.start_tainted();
  world.restart_driver(node_in(device));
  world.run_for(1h);
  CHECK(world.health("s-0") == "Healthy");
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.conditions("s-0") == Words{"True"});
  CHECK(world.message(device, "Tainted").find("driver pod kube-system/gpu-driver-") != std::string::npos);
  CHECK(world.message(device, "Tainted").find("is no evidence of a repair") != std::string::npos);
  const auto waited = world.run_until_untainted(device, 2h);
  CHECK(waited > 59min);
  CHECK(waited < 1h + 1min);
  CHECK(world.says(device, "OnProbation"));
  world.run_for(1min);
  CHECK(world.conditions("s-0") == Words{"True", "False"});
  CHECK(world.steps() == Words{"PATCH rule", "DELETE rule"});
}

TEST_CASE(
    "an eviction that waits is not called off by a plugin's restart, and not made on a device that reads Healthy") {
  Drivers world;
  world.policy().evict->after = 5min;
  world.send_policy();
  world.cluster.create_stateful_set("default", "p", 1, TaintWorld::plugin_pod());
  world.run_for(10s);
  const auto node = world.node_of("p-0");
  const auto bad = world.plugin_device("p-0");
  world.cluster.set_device_health(node, bad, "Unhealthy");
  world.run_for(2min);
  REQUIRE(world.conditions("p-0") == Words{"True"});
  world.restart_plugin(node);
  world.run_for(1h);
  CHECK(world.health("p-0") == "Healthy");
  CHECK(world.evictions().empty());
  CHECK(world.conditions("p-0") == Words{"True"});
  CHECK(world.says_of_pod("p-0", "ReporterRestarted"));
  // It says so itself: then the eviction is due.
  world.cluster.set_device_health(node, bad, "Unhealthy");
  world.run_for(30s);
  CHECK(world.evictions() == Words{"default/p-0"});
}

TEST_CASE("a driver's own taint that its restart took away is no evidence") {
  Drivers world;
  const auto device = world.start_one();
  const auto node = node_in(device);
  const auto name = device.substr(device.rfind('/') + 1);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  REQUIRE(world.steps() == Words{"PATCH rule", "evict"});
  world.cluster.taint_device(node, name, {"gpu.example.com/xid", "79", "NoSchedule"});
  world.run_for(10min);
  world.restart_driver(node);
  world.run_for(1h + 59min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.run_until_untainted(device, 5min) < 2min);
  CHECK(world.says(device, "OnProbation"));
}

TEST_CASE("a driver that begins anew again and again does not extend the hold") {
  Drivers world;
  const auto device = world.start_tainted();
  const auto began = world.now.mono;
  while (!world.rule_for(device).is_null() && world.now.mono - began < 6h) {
    world.cluster.kill_driver(node_in(device), TaintWorld::kDriver);
    world.run_for(20s);  // long enough to read Unknown
    world.restart_driver(node_in(device));
    world.cluster.start_driver(node_in(device), TaintWorld::kDriver);
    world.run_for(4min);
  }
  CHECK(world.now.mono - began > 2h);
  CHECK(world.now.mono - began < 2h + 10min);
  CHECK(world.steps() == Words{"PATCH rule", "DELETE rule"});
}

TEST_CASE("what a driver has called bad again after its restart, it may call healthy") {
  Drivers world;
  const auto device = world.start_tainted();
  world.restart_driver(node_in(device));
  world.run_for(20min);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(1min);
  world.set_health(device, "Healthy");
  const auto taken = world.run_until_untainted(device, 1h);
  CHECK(taken >= 10min);
  CHECK(taken < 11min);
  CHECK_FALSE(world.says(device, "OnProbation"));
  CHECK(world.conditions("s-0") == Words{"True", "False"});
}

TEST_CASE("a driver that has run since before the incident is believed, and so is one that no pod is known of") {
  for (const auto& paths : {Words{"/var/lib/kubelet/plugins"}, Words{"/var/lib/kubelet/plugins/csi.example.com"}}) {
    CAPTURE(paths.front());
    Drivers world(paths);
    const auto device = world.start_tainted();
    if (paths.front().ends_with("csi.example.com")) {
      world.restart_driver(node_in(device));
    } else {
      world.set_health(device, "Healthy");
    }
    const auto taken = world.run_until_untainted(device, 1h);
    CHECK(taken >= 10min);
    CHECK(taken < 11min);
    CHECK_FALSE(world.says(device, "OnProbation"));
  }
}

TEST_CASE("a driver whose pod is not known is not believed once its slices have been made anew") {
  TaintWorld world;
  world.policy().recover.hold = 2h;
  world.send_policy();
  const auto device = world.start_tainted();
  bool is_seen = false;
  SUBCASE("until its slices were gone") { is_seen = true; }
  SUBCASE("for less than the kubelet waits") {}
  world.cluster.kill_driver(node_in(device), TaintWorld::kDriver);
  world.run_for(is_seen ? 2min : 5s);
  world.cluster.forget_health(node_in(device), TaintWorld::kDriver);
  world.cluster.start_driver(node_in(device), TaintWorld::kDriver);
  world.run_for(30min);
  CHECK(world.health("s-0") == "Healthy");
  CHECK((world.effect_of(device) == "NoSchedule") == is_seen);
}

TEST_CASE("a device called bad in the very second in which its slices were made is believed when it is well again") {
  // The API server cuts that time to the second.
  TaintWorld world;
  world.policy().evict.reset();
  world.send_policy();
  const auto device = world.start_one();
  world.cluster.kill_driver(node_in(device), TaintWorld::kDriver);
  world.run_for(2min);
  const auto into_second = world.now.wall.time_since_epoch() % 1s;
  world.run_for(std::chrono::ceil<Millis>(1'200ms - into_second));
  world.cluster.start_driver(node_in(device), TaintWorld::kDriver);
  world.run_for(400ms);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_until_tainted(device);
  world.run_for(1min);
  world.set_health(device, "Healthy");
  const auto taken = world.run_until_untainted(device, 1h);
  CHECK(taken < 11min);
}

TEST_CASE("a new boot of the node is evidence: on probation after healthyFor, and a relapse is an incident at once") {
  Drivers world;
  const auto device = world.start_tainted();
  world.cluster.reboot(node_in(device), 20s);
  world.run_for(9min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.conditions("s-0") == Words{"True"});
  CHECK(world.run_until_untainted(device, 2min) < 2min);
  CHECK(world.says(device, "OnProbation"));
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10s);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a device that is bad again after the boot was not repaired by it") {
  Drivers world;
  const auto device = world.start_tainted();
  world.cluster.reboot(node_in(device), 20s);
  world.run_for(5min);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(1min);
  world.restart_driver(node_in(device));
  world.run_for(1h);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("then: Keep waits for an operator, whatever begins anew") {
  Drivers world;
  world.policy().recover.probation = false;
  world.send_policy();
  const auto device = world.start_tainted();
  world.restart_driver(node_in(device));
  world.run_for(4h);
  world.cluster.reboot(node_in(device), 20s);
  world.run_for(24h);
  CHECK(world.effect_of(device) == "NoSchedule");
  const auto name = text(world.rule_for(device), {"metadata", "name"});
  REQUIRE(world.cluster
              .kubectl_patch(Res::TaintRules, "", name,
                             {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "yes"}}}}}})
              .status == 200);
  CHECK(world.run_until_untainted(device, 15min) < 15min);
  world.run_for(1min);
  CHECK(world.conditions("s-0") == Words{"True", "False"});
}

TEST_CASE("a restart of ours at any moment does not make a driver's forgetting a repair") {
  for (const auto before : {0s, 3s, 30s, 300s}) {
    for (const auto after : {0s, 5s, 15s, 400s}) {
      CAPTURE(before.count());
      CAPTURE(after.count());
      Drivers world;
      const auto device = world.start_held();
      world.run_until_tainted(device);
      world.run_for(30s + before);
      world.restart_driver(node_in(device));
      world.run_for(after);
      world.restart_controller();
      world.run_for(30min);
      CHECK(world.effect_of(device) == "NoSchedule");
      CHECK(world.conditions("s-0") == Words{"True"});
      CHECK(world.steps() == Words{"PATCH rule"});
    }
  }
}

TEST_CASE("a driver pod that has been replaced within the incident is no older than its pod") {
  Drivers world;
  const auto device = world.start_tainted();
  const auto node = node_in(device);
  world.cluster.kubectl_delete(Res::Pods, "kube-system", world.pod_of("gpu-driver", node));
  world.cluster.forget_health(node, TaintWorld::kDriver);
  world.run_for(1h);
  REQUIRE_FALSE(world.pod_of("gpu-driver", node).empty());
  CHECK(world.health("s-0") == "Healthy");
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a tenant's pod that mounts the drivers' folders changes nothing") {
  Drivers world({"/var/lib/kubelet/plugins/csi.example.com"});
  const auto device = world.start_tainted();
  PodShape shape;
  shape.host_paths = {"/var/lib/kubelet/plugins_registry"};
  shape.node_selector = {{"kubernetes.io/hostname", node_in(device)}};
  world.cluster.create_deployment("tenant", "looks-like-a-driver", 1, shape);
  world.set_health(device, "Healthy");
  CHECK(world.run_until_untainted(device, 15min) < 11min);
}

TEST_CASE("a driver that crashes before the incident opens, and calls the device healthy, has not repaired it") {
  for (const auto gap : {5s, 20s, 50s}) {
    CAPTURE(gap.count());
    Drivers world;
    const auto device = world.start_held();
    world.run_for(gap);
    world.cluster.kill_driver(node_in(device), TaintWorld::kDriver);
    world.run_for(4s);
    world.restart_driver(node_in(device));
    world.cluster.start_driver(node_in(device), TaintWorld::kDriver);
    world.run_for(30min);
    CHECK(world.health("s-0") == "Healthy");
    CHECK(world.effect_of(device) == "NoSchedule");
    CHECK(world.conditions("s-0") == Words{"True"});
    CHECK(world.message(device, "Tainted").find("is no evidence of a repair") != std::string::npos);
    CHECK(world.run_until_untainted(device, 2h) > 89min);
  }
}

TEST_CASE("a plugin that crashes before the incident opens has not repaired its device either") {
  Drivers world;
  world.cluster.create_stateful_set("default", "p", 1, TaintWorld::plugin_pod());
  world.run_for(10s);
  const auto node = world.node_of("p-0");
  world.cluster.set_device_health(node, world.plugin_device("p-0"), "Unhealthy");
  world.run_for(20s);
  world.restart_plugin(node);
  world.run_for(30min);
  CHECK(world.health("p-0") == "Healthy");
  CHECK(world.conditions("p-0") == Words{"True"});
  CHECK(world.says_of_pod("p-0", "ReporterRestarted"));
  CHECK(world.evictions().empty());
}

TEST_CASE("a driver that begins anew while no controller runs is known to the next one") {
  Drivers world;
  const auto device = world.start_tainted();
  world.restart_controller();
  world.restart_driver(node_in(device));
  world.run_for(30min);
  CHECK(world.health("s-0") == "Healthy");
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.conditions("s-0") == Words{"True"});
  CHECK(world.message(device, "Tainted").find("driver pod kube-system/gpu-driver-") != std::string::npos);
}
