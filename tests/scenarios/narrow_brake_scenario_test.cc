// Brakes of a workload and of a driver's words, on the simulator.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"
#include "tests/support/core/taint_world.h"

namespace dhc::test {

using namespace dhc::sim;
using std::chrono::minutes;

namespace {

/// Eight nodes of four devices: a Deployment of eight pods and twelve others hold them, and twelve are free.
struct NarrowWorld : Scenario {
  NarrowWorld() {
    whole_policy().own_namespace = "device-health-system";
    auto& limits = whole_policy().limits;
    limits = {.evictions_per_minute = 100, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
    limits.brake_at_least = 1000;
    limits.suspect_after = 0;
    limits.brake_by_owner = {.percent = 30, .at_least = 3};
    policy().after = Seconds(10);
    restart_controller();
    for (int n = 0; n < 8; ++n) cluster.add_node({fmt::format("node-{}", n), {{kResource, 4}}, {}, {}});
    PodShape shape;
    shape.resource = kResource;
    shape.labels = {{"app", "wide"}};
    cluster.create_deployment("default", "wide", 8, shape);
    for (int i = 0; i < 12; ++i) cluster.create_stateful_set("default", fmt::format("s{}", i), 1, shape);
    run_for(Seconds(20));
  }

  void spoil(const std::string& name) {
    const auto device = plugin_device(name);
    REQUIRE_FALSE(device.empty());
    cluster.set_device_health(text(pod(name), {"spec", "nodeName"}), device, "Unhealthy");
  }

  [[nodiscard]] bool is_braked(const std::string& part) const {
    return std::ranges::any_of(verdicts(), [&](const Verdict& verdict) {
      return verdict.reason == Reason::BrakeEngaged && verdict.message.contains(part);
    });
  }
};

}  // namespace

TEST_CASE("A Deployment whose pods break half of their devices stays where it is over restarts, and others move") {
  NarrowWorld world;
  const auto pods = world.live("wide-");
  REQUIRE(pods.size() == 8);
  for (int i = 0; i < 4; ++i) world.spoil(pods.at(static_cast<std::size_t>(i)));
  world.spoil("s3-0");
  world.run_for(minutes(5));
  CHECK(world.is_braked("4 of 8 devices of example.com/gpu that Deployment default/wide holds are bad"));
  CHECK(world.evictions() == std::vector<std::string>{"default/s3-0"});
  world.restart_controller();
  world.run_for(minutes(5));
  CHECK(world.is_braked("Deployment default/wide"));
  CHECK(world.evictions().size() == 1);
  for (int i = 0; i < 4; ++i) {
    const auto& name = pods.at(static_cast<std::size_t>(i));
    world.cluster.set_device_health(text(world.pod(name), {"spec", "nodeName"}), world.plugin_device(name), "Healthy");
  }
  world.run_for(minutes(2));
  CHECK_FALSE(world.is_braked("Deployment default/wide"));
}

TEST_CASE(
    "With a count so many bad devices of a cluster stop what is done for them, over restarts, and one fewer do not") {
  NarrowWorld world;
  world.whole_policy().limits.brake_by_owner = {};
  world.whole_policy().limits.brake_at_least = 4;
  world.whole_policy().limits.brake_count = 4;
  world.restart_controller();
  for (const auto* name : {"s0-0", "s1-0", "s2-0", "s3-0"}) world.spoil(name);
  world.run_for(minutes(5));
  CHECK(world.is_braked("4 of 32 devices of example.com/gpu"));
  CHECK(world.evictions().empty());
  world.restart_controller();
  world.run_for(minutes(5));
  CHECK(world.is_braked("4 of 32 devices of example.com/gpu"));
  CHECK(world.evictions().empty());
  const auto node = text(world.pod("s3-0"), {"spec", "nodeName"});
  world.cluster.set_device_health(node, world.plugin_device("s3-0"), "Healthy");
  world.run_for(minutes(5));
  CHECK_FALSE(world.is_braked("devices of example.com/gpu"));
  CHECK(world.evictions() == std::vector<std::string>{"default/s0-0", "default/s1-0", "default/s2-0"});
}

TEST_CASE("The same words on devices of several nodes stop what is done for them, and other words do not") {
  TaintWorld world;
  world.whole_policy().limits.brake_at_least = 1000;
  world.whole_policy().limits.brake_by_message.at_least = 3;
  world.send_policy();
  for (int i = 0; i < 6; ++i)
    world.cluster.create_stateful_set("default", fmt::format("s{}", i), 1, TaintWorld::dra_pod());
  world.run_for(Seconds(20));
  std::vector<std::string> devices;
  for (int i = 0; i < 4; ++i) devices.push_back(world.device_of(fmt::format("s{}-0", i)));
  for (std::size_t i = 0; i < 3; ++i)
    world.set_health(devices.at(i), "Unhealthy", fmt::format("lost link {} of GPU-{}", 7 * i, i));
  world.set_health(devices.at(3), "Unhealthy", "double-bit error");
  world.run_for(minutes(5));
  const auto braked = std::ranges::find(world.verdicts(), Reason::BrakeEngaged, &Verdict::reason);
  REQUIRE(braked != world.verdicts().end());
  INFO(braked->message);
  CHECK(braked->message.starts_with("3 of "));
  CHECK(braked->message.contains(
      " devices of gpu.example.com in the cluster are bad in the same words, \"lost link # of GPU-#\": "));
  CHECK(world.evictions() == std::vector<std::string>{"default/s3-0"});
  for (std::size_t i = 0; i < 3; ++i) CHECK(world.rule_for(devices.at(i)).is_null());
}

}  // namespace dhc::test
