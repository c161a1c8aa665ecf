// A driver that gives all its chips of a node one and the same `uuid`, as Google's TPU driver does: that names none of
// them.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::node_in;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kIncidents = "device-health.io/incidents";

struct ChipsWorld : TaintWorld {
  ChipsWorld() {
    policy().recover.hold = 1h;
    send_policy();
    for (const auto* node : {"node-a", "node-b"}) cluster.name_by_node(node, kDriver);
    run_for(5s);
  }
  /// The values of an attribute that the node's driver publishes, each once.
  [[nodiscard]] std::vector<std::string> published(const std::string& node, const std::string& attribute) const {
    std::vector<std::string> values;
    for (const auto& [name, slice] : cluster.store().all(Res::Slices)) {
      if (text(*slice, {"spec", "nodeName"}) != node) continue;
      for (const auto& device : list(*slice, {"spec", "devices"})) {
        const auto value = text(device, {"attributes", attribute, "string"});
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
      }
    }
    return values;
  }
  /// The machine goes, and another one comes under its name.
  void replace_node(const std::string& node) {
    cluster.remove_node(node);
    run_for(1min);
    cluster.add_node({node, {{kResource, 4}}, {{kDriver, 4}}, {}});
    cluster.name_by_node(node, kDriver);
    run_for(1min);
  }
};

}  // namespace

TEST_CASE("of chips with one uuid a bad one is tainted and evicted alone, and its rule names no card") {
  ChipsWorld world;
  auto shape = TaintWorld::dra_pod();
  shape.node_selector = {{"kubernetes.io/hostname", "node-a"}};
  world.cluster.create_stateful_set("default", "s", 3, shape);
  world.run_for(10s);
  REQUIRE(world.published("node-a", "uuid") == Words{"TPU-node-a"});
  const auto device = world.device_of("s-1");
  world.set_health(device, "Unhealthy", "TPU device file is missing");
  world.run_for(2min);
  CHECK(world.evictions() == Words{"default/s-1"});
  CHECK(world.rule_count() == 1);
  CHECK(text(world.rule_for(device), {"metadata", "annotations", "device-health.io/identity"}).empty());
  world.restart_controller();
  world.run_for(30min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  for (const auto* pod : {"s-0", "s-2"}) CHECK(world.reasons(pod).empty());
}

TEST_CASE("a chip's history is not its sibling's, though both have one uuid") {
  ChipsWorld world;
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "TPU device file is missing");
  world.run_for(5min);
  CHECK(world.run_until_untainted(device, 2h) < 2h);
  // On the same node another chip breaks.
  world.set_health(device, "Healthy");
  auto shape = TaintWorld::dra_pod();
  shape.node_selector = {{"kubernetes.io/hostname", node_in(device)}};
  world.cluster.create_stateful_set("default", "t", 3, shape);
  world.run_for(10s);
  auto sibling = world.device_of("t-0");
  if (sibling == device) sibling = world.device_of("t-1");
  world.set_health(sibling, "Unhealthy", "TPU device file is missing");
  world.run_until_tainted(sibling);
  CHECK(text(world.rule_for(sibling), {"metadata", "annotations", kIncidents}) == "1");
  CHECK(world.rule_for(device).is_null());
}

TEST_CASE("a value that all devices of a pool share proves no device of a new node to be one of the old node's") {
  ChipsWorld world;
  std::string attribute = "uuid";
  SUBCASE("in the well-known attribute") {}
  SUBCASE("in the one that the policy names") {
    attribute = "model";
    world.policy().recover.identity_attribute = attribute;
    world.send_policy();
  }
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "TPU device file is missing");
  world.run_for(2min);
  REQUIRE_FALSE(world.rule_for(device).is_null());
  const auto before = world.published(node_in(device), attribute);
  world.replace_node(node_in(device));
  REQUIRE(before.size() == 1);
  REQUIRE(world.published(node_in(device), attribute) == before);
  CHECK(world.rule_for(device).is_null());
}
