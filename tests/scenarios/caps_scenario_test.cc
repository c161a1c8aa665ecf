#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"

namespace dhc::test {

using namespace dhc::sim;
using std::chrono::minutes;

namespace {

constexpr int kPods = 24;

/// Three nodes of eight devices, each held by a pod of its own, under the default caps.
struct LiarWorld : Scenario {
  LiarWorld() {
    whole_policy().own_namespace = "device-health-system";
    whole_policy().limits.per_node = 100;
    whole_policy().limits.max_in_flight = 100;
    policy().after = Seconds(10);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    hold_caps();
    restart_controller();
    for (const auto* name : {"node-a", "node-b", "node-c"}) cluster.add_node({name, {{kResource, 8}}, {}, {}});
    PodShape shape;
    shape.resource = kResource;
    for (int i = 0; i < kPods; ++i) cluster.create_stateful_set("default", fmt::format("s{}", i), 1, shape);
    run_for(Seconds(20));
  }

  void lie_about(int i) {
    const auto name = fmt::format("s{}-0", i);
    const auto device = plugin_device(name);
    if (device.empty()) return;  // a replacement that waits for a device
    cluster.set_device_health(text(pod(name), {"spec", "nodeName"}), device, "Unhealthy");
  }

  [[nodiscard]] bool says_of(int i, const std::string& reason) const {
    const auto held = reasons(fmt::format("s{}-0", i));
    return std::ranges::find(held, reason) != held.end();
  }

  [[nodiscard]] int running() const {
    int count = 0;
    for (int i = 0; i < kPods; ++i) {
      const auto object = pod(fmt::format("s{}-0", i));
      if (!object.is_null() && object["status"]["phase"] == "Running" &&
          !object["metadata"].contains("deletionTimestamp"))
        ++count;
    }
    return count;
  }
};

}  // namespace

TEST_CASE("A liar takes two of 24 pods on the simulator, over restarts and changes of the leader") {
  LiarWorld world;
  REQUIRE(world.running() == kPods);
  for (int i = 0; i < kPods; ++i) {
    world.lie_about(i);
    world.run_for(minutes(1));
    if (i % 3 == 0) world.restart_controller();
    if (i % 3 == 1) {
      world.lead(false);
      world.run_for(Seconds(10));
      world.lead(true);
    }
    world.run_for(minutes(1));
  }
  CHECK(world.evictions().size() == 2);
  CHECK(world.running() == kPods - 2);
  CHECK(world.says_of(23, "CapReached"));
}

TEST_CASE("A pod that stays although its eviction is accepted again and again counts against the day once") {
  LiarWorld world;
  const auto is_state_write = [](const RequestRecord& write) {
    return write.target.find(std::string(kIncidentsName)) != std::string::npos;
  };
  world.whole_policy().limits.cap_cluster = {.percent = 100, .at_least = 100};
  world.whole_policy().limits.cap_node = {.percent = 100, .at_least = 100};
  world.send_policy();
  std::vector<std::string> before;
  for (int i = 0; i < 4; ++i) before.push_back(world.uid(fmt::format("s{}-0", i)));
  const auto count_gone = [&] {
    int gone = 0;
    for (int i = 0; i < 4; ++i)
      gone += world.uid(fmt::format("s{}-0", i)) == before[static_cast<std::size_t>(i)] ? 0 : 1;
    return gone;
  };
  world.cluster.faults().add(
      {.method = k8s::Method::Post, .path_contains = "/eviction", .count = -1, .status = 201, .body = "{}"});
  world.lie_about(0);
  SUBCASE("in one process") { world.run_for(minutes(30)); }
  SUBCASE("over restarts") {
    for (int i = 0; i < 4; ++i) {
      world.run_for(minutes(7));
      world.restart_controller();
    }
  }
  CHECK(std::ranges::count_if(world.cluster.requests(), [](const RequestRecord& request) {
          return request.target.find("/eviction") != std::string::npos;
        }) > 1);
  CHECK(count_gone() == 0);
  CHECK(std::ranges::count_if(world.cluster.writes(), is_state_write) < 60);
  // The day's cap is four of 24: there is room for three others, and then for the pod that has counted already.
  world.cluster.faults().clear();
  for (int i = 1; i < 4; ++i) world.lie_about(i);
  world.run_for(minutes(20));
  CHECK(count_gone() == 4);
  world.lie_about(4);
  world.run_for(minutes(5));
  CHECK(world.says_of(4, "CapReached"));
}

}  // namespace dhc::test
