// A driver that says by a taint in its ResourceSlice what it never says to the kubelet.
#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kXid = "gpu.example.com/xid";

/// A pod on a device of which the kubelet knows nothing, and a policy that asks for the driver's taints.
struct SilentDriver : TaintWorld {
  SilentDriver() {
    policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    send_policy();
    device = start_one();
    set_health(device, "Unknown");
    run_for(1min);
    const auto first = device.find('/');
    const auto last = device.rfind('/');
    node = device.substr(first + 1, last - first - 1);
    name = device.substr(last + 1);
  }
  void taint(const std::string& value = "79", const std::string& effect = "NoSchedule") {
    cluster.untaint_device(node, name);
    cluster.taint_device(node, name, {kXid, value, effect});
  }

  std::string device;
  std::string node;
  std::string name;
};

}  // namespace

TEST_CASE("a driver that only taints its device moves the pod that holds it, and needs no rule of ours") {
  SilentDriver world;
  world.taint();
  world.run_for(5min);
  CHECK(world.steps() == Words{"evict"});
  CHECK(world.device_of("s-0") != world.device);
  CHECK(world.pod("s-0")["status"]["phase"] == "Running");
  CHECK(world.says(world.device, "TaintedByOther"));
}

TEST_CASE("a taint that is gone when the eviction is due evicts nobody, though its watch is late") {
  SilentDriver world;
  world.taint();
  world.run_for(30s);
  world.hold(k8s::Kind::ResourceSlice, true);
  world.cluster.untaint_device(world.node, world.name);
  world.run_for(70s);
  CHECK(world.evictions().empty());
  CHECK(world.says_of_pod("s-0", "SignalGone"));
  world.hold(k8s::Kind::ResourceSlice, false);
  world.run_for(10min);
  CHECK(world.evictions().empty());
  CHECK(world.reasons("s-0").empty());
}

TEST_CASE("the incident of a taint ends when that has been gone for ten minutes") {
  SilentDriver world;
  world.policy().evict.reset();
  world.policy().match.device_taints.front().effect = "*";
  world.send_policy();
  world.taint("79", "None");
  world.run_for(5min);
  CHECK(world.effect_of(world.device) == "NoSchedule");  // ours: the driver's keeps nobody off
  world.cluster.untaint_device(world.node, world.name);
  world.run_for(9min);
  CHECK(world.effect_of(world.device) == "NoSchedule");
  CHECK(world.run_until_untainted(world.device, 2min) < 2min);
}

TEST_CASE("a free device with a taint that an enforcing policy of its node names is no place to go") {
  TaintWorld world;
  world.policy().evict->hold_without_replacement = true;
  DevicePolicy other = world.policy();
  other.name = "information";
  other.priority = world.policy().priority - 1;
  other.match.device_taints = {{.key = kXid, .effect = "*"}};
  bool is_place = true;
  SUBCASE("it enforces there") { is_place = false; }
  SUBCASE("it only observes") { other.mode = Mode::Observe; }
  SUBCASE("it is for other nodes") {
    other.match.nodes.requirements = {{.key = "pool", .op = LabelSelector::Operator::Exists, .values = {}}};
  }
  world.whole_policy().policies.push_back(other);
  world.send_policy();
  const auto device = world.start_one();
  for (const auto* node : {"node-a", "node-b"}) {
    for (int i = 0; i < 4; ++i) {
      const auto name = "gpu-" + std::to_string(i);
      if (device.ends_with(std::string(node) + "/" + name)) continue;
      world.cluster.taint_device(node, name, {kXid, "43", "None"});
    }
  }
  world.run_for(1min);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(30min);
  CHECK(world.evictions().empty() != is_place);
  CHECK(world.says_of_pod("s-0", "NoReplacementDevice") != is_place);
}
