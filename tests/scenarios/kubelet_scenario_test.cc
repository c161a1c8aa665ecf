// What a kubelet shows, and when: its restarts, and what happens between two of its looks. The stories of
// docs/kubernetes-behaviour.md, as far as time is their point.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Scenario;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kOurs = "device-health.io/DeviceUnhealthy";

/// What the API server showed: when, after a moment of the test's choice, and what.
struct Shown {
  Millis after;
  std::string what;
  friend bool operator==(const Shown&, const Shown&) = default;
};

/// One node of four devices, two pods of a Deployment on it.
struct Plugins : Scenario {
  Plugins() {
    cluster.add_node({"node-a", {{kResource, 4}}, {}, {}});
    PodShape shape;
    shape.resource = kResource;
    cluster.create_deployment("default", "infer", 2, shape);
    run_for(10s);
    sick = live("infer-").front();
    bad = plugin_device(sick);
    neighbour = live("infer-").back();
  }
  void set(std::string_view health) { cluster.set_device_health("node-a", bad, health); }

  /// What the node's status and the sick pod's field showed since then, each change once.
  [[nodiscard]] std::vector<Shown> shown_since(MonoTime since) const {
    std::vector<Shown> all;
    std::string last_node;
    std::string last_pod;
    for (const auto& change : cluster.store().changes(Res::Nodes)) {
      const auto now_shown = fmt::format("node {}/{}", text(*change.object, {"status", "allocatable", kResource}),
                                         text(*change.object, {"status", "capacity", kResource}));
      if (change.at >= since && now_shown != last_node) all.push_back({change.at - since, now_shown});
      last_node = now_shown;
    }
    for (const auto& change : cluster.store().changes(Res::Pods)) {
      if (name_of(*change.object) != sick) continue;
      const auto now_shown = "pod " + shown_by(*change.object);
      if (change.at >= since && now_shown != last_pod) all.push_back({change.at - since, now_shown});
      last_pod = now_shown;
    }
    // Not stable_sort: libstdc++ 12's is deprecated to clang.
    std::vector<Shown> sorted;
    for (const auto& each : all) {
      sorted.insert(std::ranges::upper_bound(sorted, each.after, {}, &Shown::after), each);
    }
    return sorted;
  }

  /// Every value that our condition on the sick pod has had: status and since when.
  [[nodiscard]] Words conditions() const {
    Words all;
    for (const auto& change : cluster.store().changes(Res::Pods)) {
      if (name_of(*change.object) != sick) continue;
      for (const auto& condition : list(*change.object, {"status", "conditions"})) {
        if (text(condition, {"type"}) != kOurs) continue;
        auto word = text(condition, {"status"}) + " " + text(condition, {"lastTransitionTime"});
        if (all.empty() || all.back() != word) all.push_back(std::move(word));
      }
    }
    return all;
  }

  std::string sick;
  std::string bad;
  std::string neighbour;

 private:
  static std::string shown_by(const Json& pod) {
    for (const auto& container : list(pod, {"status", "containerStatuses"})) {
      for (const auto& entry : list(container, {"allocatedResourcesStatus"})) {
        for (const auto& device : list(entry, {"resources"})) return text(device, {"health"});
      }
    }
    return "nothing";
  }
};

}  // namespace

TEST_CASE("a kubelet restart shows a node without devices, then a false Healthy, then the truth, the numbers last") {
  Plugins world;
  world.set("Unhealthy");
  world.run_for(5s);
  const auto restarted = world.now.mono;
  world.cluster.restart_kubelet("node-a", 20s);
  world.run_for(30s);
  CHECK(world.shown_since(restarted) ==
        std::vector<Shown>{{150ms, "node 0/0"}, {1000ms, "pod Healthy"}, {20s, "pod Unhealthy"}, {22s, "node 3/4"}});
}

TEST_CASE("the incident stays one through a kubelet restart, and nobody is evicted before the plugin has spoken") {
  for (const auto silent : {3s, 30s, 200s}) {
    CAPTURE(silent.count());
    Plugins world;
    world.policy().after = 0s;
    world.policy().evict->after = 15s;
    world.send_policy();
    world.set("Unhealthy");
    world.run_for(5s);
    REQUIRE(world.conditions().size() == 1);
    world.cluster.restart_kubelet("node-a", silent);
    world.run_for(silent - 1s);
    CHECK(world.evictions().empty());
    world.run_for(3min);
    CHECK(world.evictions() == Words{"default/" + world.sick});
    CHECK(world.conditions().size() == 1);
    CHECK(world.conditions().front().starts_with("True "));
    CHECK(world.health(world.neighbour) == "Healthy");
  }
}

TEST_CASE("the same when the watch of nodes is behind: the false Healthy comes before the capacity of 0") {
  Plugins world;
  world.policy().after = 0s;
  world.policy().evict->after = 15s;
  world.send_policy();
  world.set("Unhealthy");
  world.run_for(5s);
  world.hold(k8s::Kind::Node, true);
  world.cluster.restart_kubelet("node-a", 60s);
  world.run_for(5s);
  CHECK(world.health(world.sick) == "Healthy");
  CHECK(world.reasons(world.sick) == Words{"WaitingWhileUnknown"});
  world.hold(k8s::Kind::Node, false);
  world.run_for(50s);
  CHECK(world.evictions().empty());
  world.run_for(3min);
  CHECK(world.evictions() == Words{"default/" + world.sick});
  CHECK(world.conditions().size() == 1);
}

TEST_CASE("a flap between two looks of the kubelet is seen by nobody") {
  Plugins world;
  world.policy().after = 0s;
  world.policy().evict->after = 0s;
  world.send_policy();
  world.run_for(100ms);
  const auto began = world.now.mono;
  for (int i = 0; i < 100; ++i) {
    world.set("Unhealthy");
    world.run_for(800ms);
    world.set("Healthy");
    world.run_for(200ms);
  }
  CHECK(world.shown_since(began).empty());
  CHECK(world.evictions().empty());
  CHECK(world.reasons(world.sick).empty());
}

TEST_CASE("a flap in step with the kubelet's looks is a steady Unhealthy for all who read the API") {
  Plugins world;
  world.cluster.lags().node_status = 1050ms;  // so that the node's numbers too are of moments when the device is bad
  world.run_for(900ms);
  const auto began = world.now.mono;
  for (int i = 0; i < 70; ++i) {
    world.set("Unhealthy");
    world.run_for(200ms);
    world.set("Healthy");
    world.run_for(800ms);
  }
  const auto shown = world.shown_since(began);
  REQUIRE_FALSE(shown.empty());
  CHECK(std::ranges::count(shown, "pod Healthy", &Shown::what) == 0);
  CHECK(world.evictions() == Words{"default/" + world.sick});
}

TEST_CASE("a device that flaps out of step is evicted only after the API has shown it Unhealthy for the whole window") {
  Plugins world;
  world.policy().after = 8s;
  world.policy().evict->after = 0s;
  world.send_policy();
  const auto began = world.now.mono;
  for (int i = 0; i < 30; ++i) {
    world.set(i % 2 == 0 ? "Unhealthy" : "Healthy");
    world.run_for(650ms);
  }
  const auto shown = world.shown_since(began);
  CHECK(std::ranges::count(shown, "pod Healthy", &Shown::what) > 3);
  CHECK(world.evictions().empty());
  world.set("Unhealthy");
  const auto steady = world.now.mono;
  world.run_for(8s);
  CHECK(world.evictions().empty());
  world.run_for(1s);
  CHECK(world.evictions() == Words{"default/" + world.sick});
  CHECK(world.shown_since(steady).front().what == "pod Unhealthy");
}
