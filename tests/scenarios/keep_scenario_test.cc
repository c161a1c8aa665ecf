// `recover.then: Keep`, as the presets of drivers that forget have it: whose Healthy it believes, and how an
// acknowledgement ends what it keeps.
#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Drivers;
using dhc::test::node_in;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// The rules of the preset `nvidia-dra`.
struct KeepWorld : Drivers {
  KeepWorld() {
    policy().recover.healthy_for = 24h;
    policy().recover.hold = 24h;
    policy().recover.probation = false;
    send_policy();
  }
  void annotate_node(const std::string& node) {
    const Json patch = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", format_rfc3339(now.wall)}}}}}};
    REQUIRE(cluster.kubectl_patch(Res::Nodes, "", node, patch).status == 200);
  }
  void annotate_rule(const std::string& device) {
    const Json patch = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "card replaced"}}}}}};
    const auto name = text(rule_for(device), {"metadata", "name"});
    REQUIRE(cluster.kubectl_patch(Res::TaintRules, "", name, patch).status == 200);
  }
};

}  // namespace

TEST_CASE("then: Keep waits through restarts of ours, and an acknowledgement made while we are away lets go") {
  KeepWorld world;
  const auto device = world.start_tainted();
  world.restart_driver(node_in(device));
  world.run_for(2h);
  world.restart_controller();
  world.run_for(50h);
  CHECK(world.health("s-0") == "Healthy");
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.conditions("s-0") == Words{"True"});
  // The process is gone when the operator speaks, and so it is soon after.
  SUBCASE("on the node") { world.annotate_node(node_in(device)); }
  SUBCASE("on the rule") { world.annotate_rule(device); }
  SUBCASE("by deleting the rule") {
    const auto name = text(world.rule_for(device), {"metadata", "name"});
    REQUIRE(world.cluster.kubectl_delete(Res::TaintRules, "", name).status == 200);
  }
  world.restart_controller();
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  world.run_for(1min);
  world.restart_controller();
  world.run_for(26h);
  CHECK(world.rule_for(device).is_null());
  CHECK(world.conditions("s-0") == Words{"True", "False"});
  // Vouched for is that incident, and no later one.
  world.set_health(device, "Unhealthy", "Xid 48");
  world.run_for(2min);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("then: Keep believes a driver that has run all along, once it has said Healthy for healthyFor") {
  KeepWorld world;
  const auto device = world.start_tainted();
  world.set_health(device, "Healthy");
  world.run_for(23h);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.run_until_untainted(device, 2h) < 2h);
  CHECK_FALSE(world.says(device, "OnProbation"));
}
