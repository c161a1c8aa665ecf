#include <csignal>
#include <memory>
#include <string>

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
struct World {
  dhc::sim::Server server{1, dhc::read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";

  World() {
    REQUIRE(server.write_kubeconfig(kubeconfig));
    server.with_cluster([](Cluster& cluster, const dhc::Now&) { cluster.add_namespace("dhc"); });
  }

  std::unique_ptr<Program> start() {
    return std::make_unique<Program>(
        std::vector<std::string>{"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "127.0.0.1:0",
                                 "--health-probe-bind-address", "127.0.0.1:0"},
        "", Program::Environment{{"POD_NAMESPACE", "dhc"}});
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
  World world;
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
  World world;
  Program program({"run", "--kubeconfig", world.kubeconfig, "--leader-elect=true"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("POD_NAMESPACE") != std::string::npos);
}

TEST_CASE("on a laptop there is no election and no Lease") {
  World world;
  Program program({"run", "--kubeconfig", world.kubeconfig, "--metrics-bind-address", "0",
                   "--health-probe-bind-address", "127.0.0.1:0"});
  REQUIRE(program.says("configuration accepted", Seconds(30)));
  program.signal(SIGTERM);
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(world.holder().empty());
  CHECK(program.err().find("leading") == std::string::npos);
}
