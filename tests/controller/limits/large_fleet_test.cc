#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

constexpr int kNodes = 5000;
constexpr int kDevices = 8;  // of each node
constexpr int kHeld = 3;     // of them; the others are free

/// Nodes of eight devices, three of them held, under the brake and the caps as they are by default; nothing else holds.
struct LargeFleet : Stage {
  LargeFleet() {
    limits() = {.evictions_per_minute = 600'000, .max_in_flight = 100'000, .per_node = 1000, .per_owner = 1000};
    policy().after = Seconds(10);
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    for (int n = 0; n < kNodes; ++n) {
      node(name_of(n), kDevices);
      for (int d = 0; d < kHeld; ++d) put_pod(pod_of(n, d), n, d, d);
    }
    settle();
  }

  static std::string name_of(int n) { return fmt::format("node-{}", n); }
  static std::string pod_of(int n, int d) { return fmt::format("p-{}-{}", n, d); }

  /// The pod of the owner `n`-`d`, on that device of that node.
  void put_pod(const std::string& name, int n, int d, int device, std::string node_name = {}) {
    pod({.name = name,
         .node = node_name.empty() ? name_of(n) : std::move(node_name),
         .owner = fmt::format("ReplicaSet/{}-{}", n, d),
         .device = fmt::format("gpu-{}", device)});
  }

  /// What the driver says of the first `count` held devices of a node.
  void say(int n, int count, Health health) {
    for (int d = 0; d < count; ++d) report(pod_of(n, d), health, "Xid 79");
    node(name_of(n), kDevices, health == Health::Healthy ? kDevices : kDevices - count);
  }
};

}  // namespace

// Each turn looks at 15,000 bad devices: as few turns as show it.
TEST_CASE("Five thousand nodes: a driver that lies about them all takes nothing, and a device that dies later goes" *
          doctest::test_suite("long")) {
  LargeFleet fleet;
  for (int n = 0; n < kNodes; ++n) fleet.say(n, kHeld, Health::Unhealthy);
  CHECK(fleet.run_for(minutes(62), minutes(31)).empty());
  // One brake for the cluster, and one for each node: 15,000 devices of 40,000, and three of eight.
  CHECK(fleet.controller().stats().brakes_engaged == kNodes + 1);
  CHECK(fleet.reasons("p-0-0") == "Braked");
  for (int n = 0; n < kNodes; ++n) fleet.say(n, kHeld, Health::Healthy);
  fleet.restart();  // with what is written of the brakes
  CHECK(fleet.run_for(Seconds(31), Seconds(31)).empty());
  CHECK(fleet.controller().stats().brakes_engaged == 0);
  fleet.say(4711, 1, Health::Unhealthy);
  CHECK(fleet.run_for(Seconds(30), Seconds(10)) == Names{"p-4711-0"});
}

TEST_CASE("Five thousand nodes: what lies about a device here and there takes no more than the share of a day" *
          doctest::test_suite("long")) {
  LargeFleet fleet;
  fleet.limits().cap_per_day = {.percent = 1, .at_least = 4};  // the default's 2,000 take too long here
  fleet.send_policy();
  for (int n = 0; n < 420; ++n) fleet.say(n, 1, Health::Unhealthy);
  CHECK(fleet.run_for(minutes(2), minutes(1)).size() == 400);
  CHECK(fleet.controller().stats().brakes_engaged == 0);
  const auto held = [](const Verdict& verdict) {
    return verdict.reason == Reason::CapReached &&
           verdict.message.starts_with("400 pods on devices of example.com/gpu were evicted within 24 h");
  };
  CHECK(std::ranges::count_if(fleet.verdicts(), held) == 20);
}

TEST_CASE("Five thousand nodes: three dead devices of one node all go, after a trial" * doctest::test_suite("long")) {
  LargeFleet fleet;
  fleet.say(7, 3, Health::Unhealthy);
  CHECK(fleet.run_for(minutes(30) - Millis(1), minutes(5)).empty());
  CHECK(fleet.controller().stats().brakes_engaged == 1);
  CHECK(fleet.run_for(Seconds(11), Seconds(5)) == Names{"p-7-0"});
  fleet.remove_pod("p-7-0");
  fleet.put_pod("q", 7, 0, 7, LargeFleet::name_of(8));
  CHECK(fleet.run_for(minutes(10), Seconds(10)) == Names{"p-7-1", "p-7-2"});
  CHECK(fleet.controller().stats().brakes_engaged == 0);
}

}  // namespace dhc::test
