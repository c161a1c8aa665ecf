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
struct World {
  dhc::sim::Server server{1, dhc::read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";

  World() { REQUIRE(server.write_kubeconfig(kubeconfig)); }

  void with(const std::function<void(Cluster&)>& work) {
    server.with_cluster([&](Cluster& cluster, const dhc::Now&) { work(cluster); });
  }

  void taint(const std::string& node) {
    with([&](Cluster& cluster) {
      const Json ours = {{"key", "device-health.io/unhealthy"}, {"effect", "NoSchedule"}};
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

  std::size_t writes() {
    std::size_t count = 0;
    with([&](Cluster& cluster) { count = cluster.writes().size(); });
    return count;
  }
};
}  // namespace

TEST_CASE("uninstall reads every page, and a server without DeviceTaintRules is no failure") {
  World world;
  world.with([](Cluster& cluster) {
    cluster.serve(Res::TaintRules, false);
    for (int i = 0; i < 501; ++i) cluster.add_node({fmt::format("node-{:03}", i), {}, {}, {}});
  });
  world.taint("node-500");
  Program dry({"uninstall", "--kubeconfig", world.kubeconfig, "--dry-run"});
  CHECK(dry.ended(Seconds(20)) == 0);
  CHECK(dry.out().find("would remove taint device-health.io/unhealthy of Node node-500\n") != std::string::npos);
  CHECK(dry.out().ends_with("would remove 1: 1 node taints; nothing was written\n"));
  CHECK(world.writes() == 0);
  Program real({"uninstall", "--kubeconfig", world.kubeconfig});
  CHECK(real.ended(Seconds(20)) == 0);
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
  World world;
  world.with([](Cluster& cluster) { cluster.serve(Res::Nodes, false); });
  Program blind({"uninstall", "--kubeconfig", world.kubeconfig});
  CHECK(blind.ended(Seconds(10)) == 1);
  CHECK(blind.err().find("error: cannot look for Nodes: ") != std::string::npos);
}
