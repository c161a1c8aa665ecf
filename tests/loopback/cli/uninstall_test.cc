#include <algorithm>
#include <csignal>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/clock.h"
#include "simulator/server.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/program.h"

namespace {
using dhc::Seconds;
using dhc::sim::Cluster;
using dhc::sim::Json;
using dhc::sim::Res;
using dhc::test::Folder;
using dhc::test::Program;

/// A simulated cluster.
struct UninstallCluster {
  dhc::sim::Server server{1, dhc::read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";

  UninstallCluster() { REQUIRE(server.write_kubeconfig(kubeconfig)); }

  void with(const std::function<void(Cluster&)>& work) {
    server.with_cluster([&](Cluster& cluster, const dhc::Now&) { work(cluster); });
  }

  void taint(const std::string& node) {
    with([&](Cluster& cluster) {
      const Json ours = {{"key", "device-health.io/unhealthy"}, {"value", "Unhealthy"}, {"effect", "NoSchedule"}};
      const Json theirs = {{"key", "example.com/x"}, {"effect", "PreferNoSchedule"}};
      const auto answer = cluster.kubectl_patch(Res::Nodes, {}, node, {{"spec", {{"taints", {ours, theirs}}}}});
      REQUIRE(answer.status == 200);
    });
  }

  std::vector<std::string> taints(const std::string& node) {
    std::vector<std::string> keys;
    with([&](Cluster& cluster) {
      const auto object = cluster.store().get(Res::Nodes, {.ns = {}, .name = node});
      REQUIRE(object != nullptr);
      for (const Json& taint : object->at("spec").at("taints")) keys.push_back(taint.at("key"));
    });
    return keys;
  }

  /// The Lease as a leader would write it.
  void renew(int second) {
    with([&](Cluster& cluster) {
      const Json spec = {{"holderIdentity", "pod-1"},
                         {"leaseDurationSeconds", 15},
                         {"renewTime", fmt::format("2026-11-20T12:00:{:02}.000000Z", second)}};
      const Json lease = {{"metadata", {{"name", "device-health-controller"}, {"namespace", "default"}}},
                          {"spec", spec}};
      if (second == 0) {
        REQUIRE(cluster.kubectl_create(Res::Leases, lease).status == 201);
      } else {
        REQUIRE(cluster.kubectl_patch(Res::Leases, "default", "device-health-controller", {{"spec", spec}}).status ==
                200);
      }
    });
  }

  bool is_asked_to_patch(const std::string& path) {
    bool is_asked = false;
    with([&](Cluster& cluster) {
      is_asked = std::ranges::any_of(cluster.requests(), [&](const auto& request) {
        return request.method == dhc::k8s::Method::Patch && request.target.starts_with(path);
      });
    });
    return is_asked;
  }

  std::size_t writes() {
    std::size_t count = 0;
    with([&](Cluster& cluster) { count = cluster.writes().size(); });
    return count;
  }
};
}  // namespace

TEST_CASE("uninstall reads every page, and a server without DeviceTaintRules is no failure") {
  UninstallCluster world;
  world.with([](Cluster& cluster) {
    cluster.serve(Res::TaintRules, false);
    for (int i = 0; i < 501; ++i) cluster.add_node({fmt::format("node-{:03}", i), {}, {}, {}});
  });
  world.taint("node-500");
  Program dry({"uninstall", "--kubeconfig", world.kubeconfig, "--dry-run"});
  CHECK(dry.ended(Seconds(30)) == 0);
  CHECK(dry.out().find("would remove taint device-health.io/unhealthy of Node node-500\n") != std::string::npos);
  CHECK(dry.out().ends_with("would remove 1: 1 node taints; nothing was written\n"));
  CHECK(world.writes() == 0);
  Program real({"uninstall", "--kubeconfig", world.kubeconfig});
  CHECK(real.ended(Seconds(60)) == 0);
  CHECK(
      real.out().ends_with("removed taint device-health.io/unhealthy of Node node-500\n"
                           "removed 1: 1 node taints; not removed 0\n"));
  CHECK(real.err() == "");
  CHECK(world.taints("node-500") == std::vector<std::string>{"example.com/x"});
  CHECK(world.writes() == 1);
}

TEST_CASE("a cluster that cannot be reached or found fails uninstall, for nothing was looked at") {
  const Folder folder;
  Program lost({"uninstall", "--kubeconfig", folder.path() + "/none"});
  CHECK(lost.ended(Seconds(10)) == 1);
  CHECK(lost.err().starts_with("error: no access to a cluster: "));
  UninstallCluster world;
  world.with([](Cluster& cluster) { cluster.serve(Res::Nodes, false); });
  Program blind({"uninstall", "--kubeconfig", world.kubeconfig});
  CHECK(blind.ended(Seconds(30)) == 1);
  CHECK(blind.err().find("error: cannot look for Nodes: ") != std::string::npos);
}

TEST_CASE("a Lease that cannot be read means that nobody can tell: nothing is removed") {
  for (const unsigned status : {403U, 503U}) {
    UninstallCluster world;
    world.with([&](Cluster& cluster) {
      cluster.add_node({"node-a", {}, {}, {}});
      cluster.faults().add({.path_contains = "/leases/", .count = -1, .status = status});
    });
    world.taint("node-a");
    const auto before = world.writes();
    Program program({"uninstall", "--kubeconfig", world.kubeconfig, "--namespace", "default"});
    CHECK(program.ended(Seconds(30)) == 1);
    CHECK(program.err().starts_with("error: cannot tell whether a controller is running: "));
    CHECK(world.writes() == before);
    CHECK(world.taints("node-a").size() == 2);
  }
}

TEST_CASE("a leader that renews its Lease is seen, whatever year its clock shows, and nothing is removed") {
  UninstallCluster world;
  world.with([](Cluster& cluster) { cluster.add_node({"node-a", {}, {}, {}}); });
  world.taint("node-a");
  world.renew(0);
  Program program({"uninstall", "--kubeconfig", world.kubeconfig, "--namespace", "default"});
  int second = 0;
  const bool refused = program.await(
      [&] {
        world.renew(1 + ++second % 59);
        return program.err().find("pod-1 renewed the Lease") != std::string::npos;
      },
      Seconds(30));
  CHECK(refused);
  CHECK(program.ended(Seconds(30)) == 1);
  CHECK(program.err().starts_with("error: a controller is running: "));
  CHECK(world.taints("node-a").size() == 2);
}

TEST_CASE("stopped after the first of two it names what has gone and what has not, each once") {
  UninstallCluster world;
  world.with([](Cluster& cluster) {
    for (const auto* name : {"node-a", "node-b"}) cluster.add_node({name, {}, {}, {}});
  });
  world.taint("node-a");
  world.taint("node-b");
  world.with([](Cluster& cluster) {
    cluster.faults().add({.method = dhc::k8s::Method::Patch, .path_contains = "node-b", .delay = Seconds(60)});
  });
  Program program({"uninstall", "--kubeconfig", world.kubeconfig});
  // With the request for the second, the answer about the first has come.
  REQUIRE(program.await([&] { return world.is_asked_to_patch("/api/v1/nodes/node-b"); }, Seconds(60)));
  program.signal(SIGINT);
  CHECK(program.ended(Seconds(30)) == 1);
  CHECK(
      program.out().ends_with("removed taint device-health.io/unhealthy of Node node-a\n"
                              "removed 1: 1 node taints; not removed 1\n"));
  CHECK(program.err().starts_with("error: stopped\nnot removed: taint device-health.io/unhealthy of Node node-b: "));
  CHECK(program.err().find("node-a") == std::string::npos);
}
