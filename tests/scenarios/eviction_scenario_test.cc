// The controller against the simulated cluster, from watch bytes to eviction requests, in virtual time.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Scenario;
using namespace std::chrono_literals;

namespace {

constexpr auto kDra = "gpu.example.com";

PodShape plugin_pod() {
  PodShape shape;
  shape.resource = kResource;
  return shape;
}

PodShape dra_pod() {
  PodShape shape;
  shape.device_class = kDra;
  return shape;
}

/// Two nodes of four plugin devices and four DRA devices, a Deployment on either kind.
struct Gpus : Scenario {
  explicit Gpus(std::uint64_t seed = 1) : Scenario(seed) {
    cluster.add_node({"node-a", {{kResource, 4}}, {{kDra, 4}}, {}});
    cluster.add_node({"node-b", {{kResource, 4}}, {{kDra, 4}}, {}});
    cluster.create_deployment("default", "infer", 2, plugin_pod());
    cluster.create_deployment("default", "render", 2, dra_pod());
    run_for(10s);
  }
  [[nodiscard]] bool says(const std::string& pod, const std::string& reason) const {
    const auto words = reasons(pod);
    return std::ranges::find(words, reason) != words.end();
  }
  /// Breaks the plugin device of the Deployment's first pod and names that pod.
  std::string break_plugin_device() {
    const auto pod = live("infer-").front();
    cluster.set_device_health(text(this->pod(pod), {"spec", "nodeName"}), plugin_device(pod), "Unhealthy");
    return pod;
  }
  std::string break_dra_device(bool taint) {
    const auto pod = live("render-").front();
    const auto node = text(this->pod(pod), {"spec", "nodeName"});
    cluster.set_device_health(node, dra_device(pod), "Unhealthy", "Xid 79");
    if (taint) cluster.taint_device(node, dra_device(pod), {"gpu.example.com/xid", "79", "NoSchedule"});
    return pod;
  }
};

}  // namespace

TEST_CASE("the pod on an unhealthy plugin device is evicted once, after the window, and replaced on a healthy device") {
  Gpus world;
  REQUIRE(world.controller().synced());
  const auto pod = world.break_plugin_device();
  world.run_for(60s);
  CHECK(world.evictions().empty());
  world.run_for(10s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  world.run_for(10min);
  CHECK(world.evictions().size() == 1);
  const auto after = world.live("infer-");
  REQUIRE(after.size() == 2);
  for (const auto& name : after) CHECK(world.health(name) == "Healthy");
}

TEST_CASE("on a full cluster the eviction waits for a place, and a node that comes is one") {
  Scenario world(1);
  world.cluster.add_node({"node-a", {{kResource, 2}}, {}, {}});
  world.cluster.create_deployment("default", "infer", 2, plugin_pod());
  world.run_for(10s);
  const auto pod = world.live("infer-").front();
  world.cluster.set_device_health("node-a", world.plugin_device(pod), "Unhealthy");
  world.run_for(90s);
  CHECK(world.evictions().empty());
  CHECK(world.reasons(pod) == std::vector<std::string>{"NoReplacementDevice"});
  SUBCASE("a node comes") {
    world.cluster.add_node({"node-b", {{kResource, 2}}, {}, {}});
    world.run_for(20s);
    CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
    world.run_for(2min);
    const auto after = world.live("infer-");
    REQUIRE(after.size() == 2);
    for (const auto& name : after) CHECK(world.health(name) == "Healthy");
  }
  SUBCASE("none comes: the replacement is Pending, as an autoscaler wants it") {
    world.run_for(9min);
    CHECK(world.evictions().empty());
    world.run_for(1min);
    CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  }
}

TEST_CASE("the evicted pod carries our condition before it goes") {
  Gpus world;
  world.cluster.lags().sigterm_exit = 30s;
  const auto pod = world.break_plugin_device();
  world.run_for(70s);
  CHECK(is_deleting(world.pod(pod)));
  CHECK(condition_status(world.pod(pod), "device-health.io/DeviceUnhealthy") == "True");
  CHECK(!world.cluster.store().all(Res::Events).empty());
}

TEST_CASE("a pod on a DRA device is evicted when the driver has tainted the device, and its replacement avoids it") {
  Gpus world;
  const auto pod = world.break_dra_device(true);
  world.run_for(90s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  for (const auto& name : world.live("render-")) CHECK(world.health(name) == "Healthy");
}

TEST_CASE("a pod on a DRA device without a taint stays and says so") {
  Gpus world;
  const auto pod = world.break_dra_device(false);
  world.run_for(5min);
  CHECK(world.evictions().empty());
  CHECK(world.says(pod, "DeviceStillSchedulable"));
}

TEST_CASE("a disruption budget without room is respected until it has room") {
  Gpus world;
  world.cluster.add_budget({"default", "infer", {{"app", "infer"}}, 2, std::nullopt});
  const auto pod = world.break_plugin_device();
  world.run_for(5min);
  CHECK(world.evictions().empty());
  CHECK(!world.reasons(pod).empty());
  world.cluster.store().edit(Res::Budgets, {"default", "infer"},
                             [](Json& budget) { budget["spec"]["minAvailable"] = 1; });
  world.run_for(5min);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
}

TEST_CASE("in observe mode nothing is written but Events") {
  Gpus world;
  world.policy().mode = Mode::Observe;
  world.send_policy();
  world.break_plugin_device();
  world.break_dra_device(true);
  world.run_for(10min);
  for (const auto& write : world.cluster.writes()) CHECK(write.target.find("/events") != std::string::npos);
  CHECK(world.evictions().empty());
}

TEST_CASE("cuts, doubled and reordered events, compaction and refusals on the way change nothing in the end") {
  for (int fault = 0; fault < 6; ++fault) {
    CAPTURE(fault);
    Gpus world;
    auto& faults = world.cluster.faults();
    if (fault == 0) faults.add({.path_contains = "watch=", .count = 20, .cut_after = 700});
    if (fault == 1) faults.add({.path_contains = "/pods?", .count = -1, .duplicate = true});
    if (fault == 2) faults.add({.path_contains = "watch=", .count = 5, .status = 503});
    if (fault == 3) faults.add({.method = k8s::Method::Post, .path_contains = "eviction", .count = 1, .status = 500});
    if (fault == 4) faults.add({.path_contains = "watch=", .count = 3, .status = 410});
    if (fault == 5) world.cluster.settings().watch_list = false;
    world.restart_controller();
    world.run_for(2min);
    if (fault == 4) world.cluster.compact();
    const auto pod = world.break_plugin_device();
    world.run_for(10min);
    CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  }
}

TEST_CASE("a restart of the controller at any moment never evicts a pod twice") {
  for (int after = 0; after < 100; after += 7) {
    CAPTURE(after);
    Gpus world;
    const auto pod = world.break_plugin_device();
    world.run_for(std::chrono::seconds(after));
    world.restart_controller();
    world.run_for(5min);
    CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  }
}

TEST_CASE("a kubelet restart does not look like a recovery") {
  Gpus world;
  const auto pod = world.break_plugin_device();
  world.run_for(30s);
  world.cluster.restart_kubelet(text(world.pod(pod), {"spec", "nodeName"}), 20s);
  world.run_for(5min);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
}
