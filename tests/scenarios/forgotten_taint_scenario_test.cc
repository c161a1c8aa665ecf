// A driver that says by a taint alone what is bad, and has forgotten it once it begins anew: that is no repair.
#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Drivers;
using dhc::test::name_in;
using dhc::test::node_in;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// A pod on a device of which the kubelet knows nothing, and a policy that asks for the driver's taints and gives the
/// pod five minutes.
struct ForgetfulDriver : Drivers {
  explicit ForgetfulDriver(bool is_pod_known = true)
      : Drivers(is_pod_known ? Words{"/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"}
                             : Words{"/var/lib/kubelet/plugins/csi.example.com"}) {
    policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    policy().evict->after = 5min;
    send_policy();
    device = start_one();
    set_health(device, "Unknown");
    run_for(1min);
  }
  /// The taint alone, whatever stood before.
  void taint(const std::string& value = "79", const std::string& effect = "NoSchedule",
             const std::string& key = "gpu.example.com/xid") {
    untaint();
    cluster.taint_device(node_in(device), name_in(device), {key, value, effect});
  }
  void untaint() { cluster.untaint_device(node_in(device), name_in(device)); }
  void restart() { cluster.restart_containers("kube-system", pod_of("gpu-driver", node_in(device))); }
  void expect_nothing_is_over() {
    CHECK(conditions("s-0") == Words{"True"});
    CHECK(evictions().empty());
    CHECK(effect_of(device) == "NoSchedule");
  }

  std::string device;
};

}  // namespace

TEST_CASE("a driver's restart takes its taint away, and ends neither the incident nor what waits in it") {
  for (const auto gap : {0s, 3s, 8s}) {
    for (const bool is_taint_first : {true, false}) {
      CAPTURE(gap.count());
      CAPTURE(is_taint_first);
      ForgetfulDriver world;
      world.taint();
      world.run_for(2min);
      REQUIRE(world.conditions("s-0") == Words{"True"});
      is_taint_first ? world.untaint() : world.restart();
      world.run_for(gap);
      is_taint_first ? world.restart() : world.untaint();
      world.run_for(1h);
      world.expect_nothing_is_over();
      CHECK(world.says_of_pod("s-0", "ReporterRestarted"));
    }
  }
}

TEST_CASE("a restart of ours at any moment does not make a driver's forgotten taint a repair") {
  for (const auto before : {0s, 3s, 30s}) {
    CAPTURE(before.count());
    ForgetfulDriver world;
    world.taint();
    world.run_for(2min);
    if (before == 0s) world.restart_controller();
    world.untaint();
    world.restart();
    world.run_for(before);
    if (before != 0s) world.restart_controller();
    world.run_for(1h);
    world.expect_nothing_is_over();
  }
}

TEST_CASE("what a restarted driver taints again is due, and its own end of that is believed") {
  ForgetfulDriver world;
  world.taint();
  world.run_for(2min);
  world.untaint();
  world.restart();
  world.run_for(1h);
  SUBCASE("due") {
    world.expect_nothing_is_over();
    world.taint("94");
    world.run_for(7min);
    CHECK(world.evictions() == Words{"default/s-0"});
  }
  SUBCASE("taken back") {
    world.taint("94");
    world.run_for(1min);
    world.untaint();
    world.run_for(35s);
    CHECK(world.conditions("s-0") == Words{"True", "False"});
    CHECK(world.run_until_untainted(world.device, 11min) < 11min);
    CHECK_FALSE(world.says(world.device, "OnProbation"));
  }
}

TEST_CASE("the hold ends a forgotten taint, on probation, also where the driver's pod is not known") {
  for (const bool is_pod_known : {true, false}) {
    CAPTURE(is_pod_known);
    ForgetfulDriver world(is_pod_known);
    world.taint();
    world.run_for(2min);
    world.cluster.kill_driver(node_in(world.device), TaintWorld::kDriver);
    world.run_for(2min);  // longer than the kubelet's grace: its slices go
    world.untaint();
    if (is_pod_known) world.restart();
    world.cluster.start_driver(node_in(world.device), TaintWorld::kDriver);
    world.run_for(1h);
    world.expect_nothing_is_over();
    const auto waited = world.run_until_untainted(world.device, 2h);
    CHECK(waited > 50min);
    CHECK(waited < 1h + 5min);
    CHECK(world.says(world.device, "OnProbation"));
    world.run_for(1min);
    CHECK(world.conditions("s-0") == Words{"True", "False"});
    CHECK(world.evictions().empty());
  }
}

TEST_CASE("a driver that has run all along takes its taint back: that is believed after a moment") {
  ForgetfulDriver world;
  world.taint();
  world.run_for(2min);
  world.untaint();
  world.run_for(28s);
  CHECK(world.conditions("s-0") == Words{"True"});
  CHECK(world.evictions().empty());
  world.run_for(4s);
  CHECK(world.conditions("s-0") == Words{"True", "False"});
  CHECK(world.run_until_untainted(world.device, 11min) < 10min);
  CHECK(world.evictions().empty());
}

TEST_CASE("an operator's acknowledgement ends the incident of a forgotten taint") {
  ForgetfulDriver world;
  world.taint();
  world.run_for(2min);
  world.untaint();
  world.restart();
  world.run_for(30min);
  world.expect_nothing_is_over();
  const auto name = text(world.rule_for(world.device), {"metadata", "name"});
  REQUIRE(world.cluster
              .kubectl_patch(Res::TaintRules, "", name,
                             {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "yes"}}}}}})
              .status == 200);
  world.run_for(15min);
  CHECK(world.conditions("s-0") == Words{"True", "False"});
  CHECK(world.rule_for(world.device).is_null());
}

TEST_CASE("a driver that taints and reports forgets both, and neither is a repair") {
  for (const bool is_report_first : {true, false}) {
    ForgetfulDriver world;
    CAPTURE(is_report_first);
    is_report_first ? world.set_health(world.device, "Unhealthy", "Xid 79") : world.taint();
    world.run_for(80s);
    is_report_first ? world.taint() : world.set_health(world.device, "Unhealthy", "Xid 79");
    world.run_for(30s);
    world.set_health(world.device, "Unknown");
    world.run_for(30s);
    world.untaint();
    world.restart_driver(node_in(world.device));
    world.run_for(1h);
    CHECK(world.health("s-0") == "Healthy");
    world.expect_nothing_is_over();
  }
}

TEST_CASE("a fault that a harmless word was written over outlives a restart of ours") {
  ForgetfulDriver world;
  world.taint();
  world.run_for(2min);
  world.taint("43", "None");
  world.run_for(30s);
  world.restart_controller();
  world.run_for(30min);
  world.expect_nothing_is_over();
  CHECK(world.says_of_pod("s-0", "WaitingWhileUnknown"));
  SUBCASE("another fault is the same incident") {
    world.taint("48");
    world.run_for(10min);
    CHECK(world.evictions() == Words{"default/s-0"});
  }
  SUBCASE("the word is taken back") {
    world.untaint();
    world.run_for(35s);
    CHECK(world.conditions("s-0") == Words{"True", "False"});
    CHECK(world.run_until_untainted(world.device, 11min) < 11min);
  }
  SUBCASE("a word with another key is none about the fault") {
    world.taint("", "None", "gpu.example.com/unmonitored");
    world.run_for(35s);
    CHECK(world.conditions("s-0") == Words{"True", "False"});
    CHECK(world.run_until_untainted(world.device, 11min) < 11min);
  }
}

TEST_CASE("information that a driver leaves on a device does not keep its incident open") {
  for (const bool is_named : {true, false}) {
    CAPTURE(is_named);
    Drivers world;
    if (is_named) world.policy().match.device_taints = {{.key = "gpu.example.com/xid", .effect = {}}};
    world.send_policy();
    const auto device = world.start_one();
    world.set_health(device, "Unhealthy", "Xid 79");
    world.cluster.taint_device(node_in(device), name_in(device), {"gpu.example.com/xid", "79", "NoSchedule"});
    world.run_for(10min);
    REQUIRE(world.device_of("s-0") != device);
    world.cluster.untaint_device(node_in(device), name_in(device));
    world.cluster.taint_device(node_in(device), name_in(device), {"gpu.example.com/unmonitored", "", "None"});
    CHECK(world.run_until_untainted(device, 12min) < 11min);
    CHECK_FALSE(world.says(device, "OnProbation"));
  }
}
