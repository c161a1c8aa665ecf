// A driver that is rolled out node by node, and breaks a device on each.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/cluster/reporters.h"
#include "tests/support/core/scenario.h"

namespace dhc::test {

using namespace dhc::sim;
using std::chrono::minutes;

namespace {

constexpr auto kRolledDriver = "gpu.example.com";

/// Twenty nodes of four DRA devices, of which pods hold two each, and a driver that runs as a DaemonSet.
struct RolledWorld : Scenario {
  static constexpr int kNodes = 20;

  RolledWorld() {
    whole_policy().own_namespace = "device-health-system";
    whole_policy().limits.per_node = 100;
    whole_policy().limits.max_in_flight = 100;
    policy().match.drivers = {kRolledDriver};
    policy().after = Seconds(30);
    policy().taint = TaintRules{};
    policy().evict->no_replacement_wait = Seconds(0);
    restart_controller();
    for (int n = 0; n < kNodes; ++n) cluster.add_node({fmt::format("node-{:02}", n), {}, {{kRolledDriver, 4}}, {}});
    PodShape driver;
    driver.host_paths = {"/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry"};
    cluster.create_daemon_set("kube-system", "gpu-driver", driver);
    PodShape shape;
    shape.device_class = kRolledDriver;
    cluster.create_deployment("default", "train", kNodes * 2, shape);
    run_for(minutes(15));  // the nodes and their drivers are no longer new
  }

  [[nodiscard]] std::string driver_on(const std::string& node) const {
    for (const auto& name : cluster.pod_names("kube-system")) {
      const auto pod = cluster.get(Res::Pods, "kube-system", name);
      if (text(*pod, {"spec", "nodeName"}) == node) return name;
    }
    return {};
  }

  /// The new driver calls the first device of the node that is in use bad, and says it with a figure of its own.
  void roll(int n) {
    const auto node = fmt::format("node-{:02}", n);
    cluster.kubectl_delete(Res::Pods, "kube-system", driver_on(node));
    run_for(Seconds(40));
    for (int gpu = 0; gpu < 4; ++gpu) {
      const auto device = fmt::format("gpu-{}", gpu);
      if (cluster.holders(node, device).empty()) continue;
      cluster.set_device_health(node, device, "Unhealthy", fmt::format("Xid 31, {} page faults", 100 + n));
      broken.emplace_back(node, device);
      break;
    }
    run_for(Seconds(20));
  }

  [[nodiscard]] std::size_t events_of(const std::string& reason, const std::string& kind) const {
    std::size_t count = 0;
    for (const auto& [name, event] : cluster.store().all(Res::Events)) {
      if (text(*event, {"reason"}) == reason && text(*event, {"regarding", "kind"}) == kind) ++count;
    }
    return count;
  }
  [[nodiscard]] std::size_t rules() const { return cluster.store().all(Res::TaintRules).size(); }
  [[nodiscard]] std::size_t count_of(const std::string& reason) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        verdicts(), [&](const Verdict& one) { return one.subject.kind == "Pod" && to_string(one.reason) == reason; }));
  }

  std::vector<std::pair<std::string, std::string>> broken;
};

}  // namespace

TEST_CASE("a bad driver that is rolled out over twenty nodes and back takes nothing, and is one Event") {
  RolledWorld world;
  for (int n = 0; n < 8; ++n) world.roll(n);
  REQUIRE(world.broken.size() == 8);
  CHECK(world.count_of("DriverRolling") == 8);
  CHECK(world.rules() == 0);
  CHECK(world.evictions().empty());
  CHECK(world.events_of("DriverRolling", "DaemonSet") == 1);
  CHECK(world.events_of("DeviceUnhealthy", "Pod") == 0);
  // Whoever reads it rolls back.
  for (const auto& [node, device] : world.broken) world.cluster.set_device_health(node, device, "Healthy");
  world.run_for(minutes(30));
  CHECK(world.rules() == 0);
  CHECK(world.evictions().empty());
  CHECK(world.events_of("DriverRolling", "DaemonSet") == 1);
  CHECK(world.events_of("DeviceUnhealthy", "Pod") == 0);
}

TEST_CASE("what a driver has broken on twenty nodes and is still bad counts, and is told on its DaemonSet alone") {
  RolledWorld world;
  for (int n = 0; n < RolledWorld::kNodes; ++n) world.roll(n);
  REQUIRE(world.broken.size() == RolledWorld::kNodes);
  CHECK(world.count_of("DriverRolling") >= 9);
  CHECK(world.rules() > 0);  // of the first nodes, where it was rolled out long ago
  world.run_for(minutes(30));
  CHECK(world.count_of("DriverRolling") == 0);
  CHECK(world.events_of("DriverRolling", "DaemonSet") >= 1);
  CHECK(world.events_of("DriverRolling", "DaemonSet") <= 2);
  CHECK(world.events_of("DeviceUnhealthy", "Pod") <= 2);  // while the others had gone already
  for (const auto& [node, device] : world.broken) CHECK(world.cluster.holders(node, device).empty());
}

}  // namespace dhc::test
