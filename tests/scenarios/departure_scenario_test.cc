// A node on its way out, and one that an operator cordons: whose pods they are, and what its devices' faults say.
#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

TEST_CASE("an operator who cordons the node of a bad card first has half an hour, over a restart too, and no more") {
  TaintWorld world;
  const auto device = world.start_one();
  world.cluster.cordon(world.node_of("s-0"), true);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(15min);
  CHECK(world.says_of_pod("s-0", "NodeCordoned"));
  world.restart_controller();
  world.run_for(14min);
  CHECK(world.steps() == Words{"PATCH rule"});
  CHECK(world.effect_of(device) == "NoSchedule");
  world.run_for(2min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}

TEST_CASE("a node under drain keeps its pods from us while it lasts, and its bad device is tainted as ever") {
  for (const std::string type : {"DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress"}) {
    CAPTURE(type);
    TaintWorld world;
    const auto device = world.start_one();
    const auto node = world.node_of("s-0");
    world.cluster.set_node_condition(node, type, "True");
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(2h);
    CHECK(world.steps() == Words{"PATCH rule"});
    CHECK(world.says_of_pod("s-0", "NodeLeaving"));
    world.cluster.set_node_condition(node, type, "False");
    world.run_for(2min);
    CHECK(world.steps() == Words{"PATCH rule", "evict"});
  }
}

TEST_CASE("maintenance in which a device fails again and again makes no lemon of it, and the same failures later do") {
  TaintWorld world;
  world.policy().recover.hold = 10min;
  const auto device = world.start_held();
  const auto node = world.node_of("s-0");
  world.cluster.set_node_condition(node, "MaintenanceInProgress", "True");
  const auto fail_thrice = [&] {
    for (int i = 0; i < 3; ++i) {
      world.set_health(device, "Healthy");
      world.run_for(12min);
      world.set_health(device, "Unhealthy", "Xid 79");
      world.run_for(10min);
    }
  };
  world.run_until_tainted(device);
  fail_thrice();
  CHECK(!world.says(device, "Quarantined"));
  world.cluster.set_node_condition(node, "MaintenanceInProgress", "False");
  fail_thrice();
  CHECK(world.says(device, "Quarantined"));
}
