#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "simulator/server.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/program.h"

namespace {
using dhc::Seconds;
using dhc::sim::Cluster;
using dhc::test::Folder;
using dhc::test::Program;

/// A simulated cluster with our namespace.
struct LeaderCluster {
  dhc::sim::Server server{1, dhc::read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";

  LeaderCluster() {
    REQUIRE(server.write_kubeconfig(kubeconfig));
    server.with_cluster([](Cluster& cluster, const dhc::Now&) { cluster.add_namespace("dhc"); });
  }

  std::unique_ptr<Program> start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run",
                                          "--kubeconfig",
                                          kubeconfig,
                                          "--metrics-bind-address",
                                          "127.0.0.1:0",
                                          "--health-probe-bind-address",
                                          "127.0.0.1:0",
                                          "--detail-bind-address",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Program>(arguments, "", Program::Environment{{"POD_NAMESPACE", "dhc"}});
  }

  std::string holder() {
    std::string holder;
    server.with_cluster([&](Cluster& cluster, const dhc::Now&) {
      const auto lease = cluster.get(dhc::sim::Res::Leases, "dhc", "device-health-controller");
      if (lease) holder = lease->value("/spec/holderIdentity"_json_pointer, "");
    });
    return holder;
  }
};
}  // namespace

TEST_CASE("of two processes one leads, the other stands by and takes over a release at once") {
  LeaderCluster world;
  const auto first = world.start();
  REQUIRE(first->says("msg=leading", Seconds(30)));
  const auto holder = world.holder();
  CHECK_FALSE(holder.empty());
  const auto second = world.start();
  REQUIRE(second->says("standing by", Seconds(30)));
  CHECK(second->says("holder=" + holder, Seconds(1)));
  const auto before = dhc::mono_now();
  first->signal(SIGTERM);
  CHECK(first->ended(Seconds(10)) == 0);
  CHECK(dhc::mono_now() - before < Seconds(5));
  CHECK(first->says("lease released", Seconds(0)));
  CHECK(second->says("msg=leading", Seconds(5)));
  CHECK(world.holder() != holder);
  second->signal(SIGTERM);
  CHECK(second->ended(Seconds(10)) == 0);
  CHECK(world.holder().empty());
}

TEST_CASE("an election without a namespace of its own is refused with one line that says how to get one") {
  LeaderCluster world;
  Program program({"run", "--kubeconfig", world.kubeconfig, "--leader-elect=true"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("POD_NAMESPACE") != std::string::npos);
}

TEST_CASE("on a laptop there is no election and no Lease") {
  LeaderCluster world;
  Program program({"run", "--kubeconfig", world.kubeconfig, "--metrics-bind-address", "0",
                   "--health-probe-bind-address", "127.0.0.1:0", "--detail-bind-address", "0"});
  REQUIRE(program.says("configuration accepted", Seconds(30)));
  program.signal(SIGTERM);
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(world.holder().empty());
  CHECK(program.err().find("msg=leading") == std::string::npos);
  CHECK(program.err().find("leader election is off: acting as the only replica") != std::string::npos);
}

TEST_CASE("while the server is still at work on an eviction of ours the Lease is not given back") {
  LeaderCluster world;
  constexpr const char* kResource = "example.com/gpu";
  world.server.with_cluster([&](Cluster& cluster, const dhc::Now&) {
    cluster.add_node({"node-a", {{kResource, 4}}, {}, {}});
    dhc::sim::PodShape shape;
    shape.resource = kResource;
    cluster.create_deployment("default", "infer", 1, shape);
    // Longer than the drain waits, however slow this machine is.
    cluster.faults().add({.path_contains = "/eviction", .delay = Seconds(60)});
  });
  const auto policy = world.folder.write("policy.yaml", R"(apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: all}
spec:
  mode: enforce
  match: {}
  after: 0s
  evict: {after: 0s}
---
apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec:
  evictions: {perMinute: 600}
)");
  const auto leader = world.start({"--mode", "enforce", "--config", policy});
  REQUIRE(leader->says("msg=leading", Seconds(60)));
  const auto is_held = [&](const char* device) {
    bool held = false;
    world.server.with_cluster(
        [&](Cluster& cluster, const dhc::Now&) { held = !cluster.holders("node-a", device).empty(); });
    return held;
  };
  std::string device;
  REQUIRE(leader->await(
      [&] {
        for (const char* each : {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}) {
          if (is_held(each)) device = each;
        }
        return !device.empty();
      },
      Seconds(60)));
  world.server.with_cluster(
      [&](Cluster& cluster, const dhc::Now&) { cluster.set_device_health("node-a", device, "Unhealthy"); });
  REQUIRE(leader->await(
      [&] {
        bool asked = false;
        world.server.with_cluster([&](Cluster& cluster, const dhc::Now&) {
          for (const auto& request : cluster.requests())
            asked = asked || request.target.find("/eviction") != std::string::npos;
        });
        return asked;
      },
      Seconds(120)));
  const auto holder = world.holder();
  CHECK_FALSE(holder.empty());
  leader->signal(SIGTERM);
  CHECK(leader->ended(Seconds(60)) == 0);
  CHECK(world.holder() == holder);
  CHECK(leader->says("lease not released: a request is still under way", Seconds(0)));
}
