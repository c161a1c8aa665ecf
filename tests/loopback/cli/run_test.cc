#include <algorithm>
#include <csignal>
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

constexpr const char* kResource = "example.com/gpu";
constexpr const char* kPolicy = R"(apiVersion: device-health.io/v1alpha1
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
)";

/// A simulated cluster with a Deployment of two pods on one node of four devices.
struct RunCluster {
  dhc::sim::Server server{1, dhc::read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";
  std::string policy = folder.write("policy.yaml", kPolicy);

  RunCluster() {
    REQUIRE(server.write_kubeconfig(kubeconfig));
    with([](Cluster& cluster) {
      cluster.add_node({"node-a", {{kResource, 4}}, {}, {}});
      dhc::sim::PodShape shape;
      shape.resource = kResource;
      shape.grace_seconds = 1;
      cluster.create_deployment("default", "infer", 2, shape);
    });
    REQUIRE(dhc::test::eventually([&] { return !held().empty(); }));
  }

  void with(const std::function<void(Cluster&)>& work) {
    server.with_cluster([&](Cluster& cluster, const dhc::Now&) { work(cluster); });
  }

  std::vector<std::string> holders(const std::string& device) {
    std::vector<std::string> pods;
    with([&](Cluster& cluster) { pods = cluster.holders("node-a", device); });
    return pods;
  }

  /// The first device that a pod holds.
  std::string held() {
    for (const char* device : {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}) {
      if (!holders(device).empty()) return device;
    }
    return {};
  }

  void break_device(const std::string& device) {
    with([&](Cluster& cluster) { cluster.set_device_health("node-a", device, "Unhealthy"); });
  }

  std::vector<std::string> evictions() {
    std::vector<std::string> pods;
    with([&](Cluster& cluster) { pods = cluster.evictions(); });
    return pods;
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"run",         "--kubeconfig",
                                    kubeconfig,    "--metrics-bind-address",
                                    "127.0.0.1:0", "--health-probe-bind-address",
                                    "127.0.0.1:0", "--detail-bind-address",
                                    "127.0.0.1:0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

/// How long the program takes to end after SIGTERM; checks its exit code.
void stops_in_time(Program& program) {
  const auto before = dhc::mono_now();
  program.signal(SIGTERM);
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(dhc::mono_now() - before < Seconds(5));
}

std::string kubeconfig_for(std::uint16_t port) {
  return fmt::format(R"(apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{}"}}}}]
users: [{{name: u, user: {{token: secret-token}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
)",
                     port);
}
}  // namespace

TEST_CASE("the pod that holds a broken device is evicted over TLS, and no other") {
  RunCluster world;
  const auto device = world.held();
  REQUIRE_FALSE(device.empty());
  const auto holders = world.holders(device);
  Program program(world.arguments({"--config", world.policy, "--mode", "enforce"}));
  world.break_device(device);
  REQUIRE(program.await([&] { return !world.evictions().empty(); }, Seconds(30)));
  CHECK(program.says("reason=Evicted", Seconds(10)));
  CHECK(world.evictions() == holders);
  stops_in_time(program);
}

TEST_CASE("what is recorded replays to the same decisions, and a folder that cannot be written is said at once") {
  RunCluster world;
  const Folder records;
  const auto device = world.held();
  REQUIRE_FALSE(device.empty());
  Program program(world.arguments({"--config", world.policy, "--mode", "enforce", "--record", records.path()}));
  world.break_device(device);
  REQUIRE(program.await([&] { return !world.evictions().empty(); }, Seconds(30)));
  CHECK(program.says("reason=Evicted", Seconds(10)));
  stops_in_time(program);
  Program replay({"replay", records.path(), "-o", "json"});
  REQUIRE(replay.ended(Seconds(30)) == 0);
  const auto json = nlohmann::json::parse(replay.out());
  CHECK(json["differences"] == 0);
  CHECK(json["runs"] == 1);
  CHECK(json["actions"]["EvictPod"] == 1);
  Program tune({"tune", records.path(), "-o", "json", "--sweep", "hold=1h"});
  REQUIRE(tune.ended(Seconds(30)) == 0);
  const auto tuned = nlohmann::json::parse(tune.out());
  CHECK(tuned["unit"] == "devices");
  CHECK(tuned["devices"] == 4);
  CHECK(tuned["faults"] == 1);
  CHECK(tuned["nobodySpeaks"]["running"]["firstFailures"] == 1);
  Program refused(world.arguments({"--config", world.policy, "--record", "/proc/none"}));
  CHECK(refused.ended(Seconds(10)) == 2);
  CHECK(refused.err().find("--record: /proc/none: ") != std::string::npos);
}

TEST_CASE("in observe mode without Events nothing at all is written") {
  RunCluster world;
  const auto device = world.held();
  Program program(world.arguments({"--config", world.policy, "--events=false"}));
  world.break_device(device);
  REQUIRE(program.says("reason=WouldEvict", Seconds(30)));
  bool wrote = false;
  world.with([&](Cluster& cluster) {
    wrote = std::ranges::any_of(cluster.writes(), [](const auto& request) {
      return request.target.find("selfsubjectaccessreviews") == std::string::npos;
    });
  });
  CHECK_FALSE(wrote);
  stops_in_time(program);
}

TEST_CASE("a SIGTERM while an eviction waits for its answer ends the program in time") {
  RunCluster world;
  world.with([](Cluster& cluster) {
    dhc::sim::Fault slow;
    slow.path_contains = "/eviction";
    slow.delay = Seconds(20);
    cluster.faults().add(slow);
  });
  const auto device = world.held();
  Program program(world.arguments({"--config", world.policy, "--mode", "enforce"}));
  world.break_device(device);
  REQUIRE(program.says("reason=Evicting", Seconds(30)));
  stops_in_time(program);
}

TEST_CASE("a SIGTERM right after the start ends the program in time") {
  RunCluster world;
  Program program(world.arguments({"--config", world.policy}));
  REQUIRE(program.says("msg=starting", Seconds(10)));
  stops_in_time(program);
}

TEST_CASE("a SIGTERM while a server swallows every packet ends the program in time") {
  const Folder folder;
  const dhc::test::SilentPort silent;
  const auto kubeconfig = folder.write("kubeconfig", kubeconfig_for(silent.port()));
  Program program({"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address",
                   "127.0.0.1:0", "--detail-bind-address", "0"});
  REQUIRE(program.says("what=health", Seconds(10)));
  stops_in_time(program);
}

TEST_CASE("detail is served on the loopback, and an address that others can reach is refused with the way to it") {
  const Folder folder;
  const auto kubeconfig = folder.write("kubeconfig", kubeconfig_for(1));
  Program served({"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
                  "--detail-bind-address", "localhost:0"});
  CHECK(served.says("what=detail address=127.0.0.1:", Seconds(10)));
  stops_in_time(served);
  for (const char* address : {":0", "0.0.0.0:0", "[::]:0"}) {
    CAPTURE(address);
    Program refused({"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address",
                     "0", "--detail-bind-address", address});
    CHECK(refused.ended(Seconds(10)) == 2);
    CHECK(refused.err().find("kubectl port-forward") != std::string::npos);
  }
}

TEST_CASE("a kubeconfig that is not there ends the program with one line that names it") {
  Program program({"run", "--kubeconfig", "/nowhere/kubeconfig"});
  CHECK(program.ended(Seconds(10)) == 1);
  const auto err = program.err();
  CHECK(err.find("/nowhere/kubeconfig") != std::string::npos);
  CHECK(std::ranges::count(err, '\n') == 1);
}

TEST_CASE("a kubeconfig that cannot be read ends the program with its name and line") {
  const Folder folder;
  const auto kubeconfig = folder.write("kubeconfig", "apiVersion: v1\nclusters: 7\n");
  Program program({"run", "--kubeconfig", kubeconfig});
  CHECK(program.ended(Seconds(10)) == 1);
  CHECK(program.err().find(kubeconfig + ":2") != std::string::npos);
}

TEST_CASE("an unreachable server is one line that names it, and the program keeps trying") {
  const Folder folder;
  const auto kubeconfig = folder.write("kubeconfig", kubeconfig_for(1));
  Program program({"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address",
                   "127.0.0.1:0", "--detail-bind-address", "0"});
  REQUIRE(program.says("127.0.0.1:1", Seconds(10)));
  CHECK(program.ended(Seconds(1)) == -1);
  const auto err = program.err();
  std::size_t lines = 0;
  for (auto at = err.find("cannot watch"); at != std::string::npos; at = err.find("cannot watch", at + 1)) ++lines;
  CHECK(lines == 1);
  stops_in_time(program);
  CHECK(program.err().find("watching again") == std::string::npos);
}

TEST_CASE("a configuration file that is not there ends the program with one line that names it") {
  RunCluster world;
  Program program(world.arguments({"--config", "/nowhere/policy.yaml"}));
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("/nowhere/policy.yaml") != std::string::npos);
}

TEST_CASE("a SIGHUP has the configuration file read again, says what came of it, and ends nothing") {
  RunCluster world;
  Program program(world.arguments({"--config", world.policy}));
  REQUIRE(program.says("configuration accepted", Seconds(10)));
  program.signal(SIGHUP);
  CHECK(program.says("asked to read the configuration again", Seconds(10)));
  CHECK(program.says("configuration read again: unchanged", Seconds(10)));
  world.folder.write("policy.yaml", "apiVersion: nonsense\n");
  program.signal(SIGHUP);
  CHECK(program.says("reason=ConfigRejected", Seconds(10)));
  stops_in_time(program);
}

TEST_CASE("a SIGHUP has the ConfigMap read again, also where its watch has nothing to tell") {
  RunCluster world;
  world.with([](Cluster& cluster) {
    cluster.add_namespace("dhc");
    cluster.set_config_map("dhc", "policy", {{"policy.yaml", kPolicy}});
  });
  Program program(world.arguments({"--config-map", "dhc/policy"}));
  REQUIRE(program.says("configuration accepted", Seconds(10)));
  program.signal(SIGHUP);
  CHECK(program.says("configuration read again: unchanged", Seconds(10)));
  CHECK(program.err().find("went back") == std::string::npos);
  stops_in_time(program);
}

TEST_CASE("a SIGHUP without a configuration says that there is none to read") {
  RunCluster world;
  Program program(world.arguments({}));
  REQUIRE(program.says("configuration accepted", Seconds(10)));
  program.signal(SIGHUP);
  CHECK(program.says("asked to read the configuration again: none was given", Seconds(10)));
  stops_in_time(program);
}

TEST_CASE("a server of another authority is refused with one line that names kubeconfig and certificate") {
  RunCluster world;
  const auto kubeconfig = world.folder.write("other", kubeconfig_for(world.server.port()));
  Program program({"run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address",
                   "127.0.0.1:0", "--detail-bind-address", "0"});
  REQUIRE(program.says("certificate", Seconds(10)));
  CHECK(program.says(kubeconfig, Seconds(1)));
  CHECK(program.err().find("secret-token") == std::string::npos);
  stops_in_time(program);
}

TEST_CASE("an expired token is told with the kubeconfig's name, and the token is not") {
  RunCluster world;
  world.with([](Cluster& cluster) { cluster.settings().token = "another one"; });
  Program program(world.arguments({"--config", world.policy}));
  const bool said = program.says("401", Seconds(10));
  INFO(program.err());
  REQUIRE(said);
  CHECK(program.says(world.kubeconfig, Seconds(1)));
  stops_in_time(program);
}

TEST_CASE("a forbidden list is named and keeps the program from being ready") {
  RunCluster world;
  world.with([](Cluster& cluster) {
    dhc::sim::Fault forbidden;
    forbidden.path_contains = "/api/v1/nodes";
    forbidden.status = 403;
    forbidden.count = -1;
    cluster.faults().add(forbidden);
  });
  Program program(world.arguments({"--config", world.policy}));
  CHECK(program.says("kind=Node", Seconds(10)));
  stops_in_time(program);
}

TEST_CASE("a configuration that is broken while running is rejected and the last good one stays") {
  RunCluster world;
  Program program(world.arguments({"--config", world.policy}));
  REQUIRE(program.says("configuration accepted", Seconds(10)));
  world.folder.write("policy.yaml", "apiVersion: nonsense\n");
  REQUIRE(program.says("reason=ConfigRejected", Seconds(10)));
  CHECK(program.says("the last good one stays in force", Seconds(1)));
  stops_in_time(program);
}

TEST_CASE("a ConfigMap that does not exist is waited for and taken when it comes") {
  RunCluster world;
  Program program(world.arguments({"--config-map", "dhc/policy", "--mode", "enforce"}));
  REQUIRE(program.says("ConfigMap dhc/policy does not exist", Seconds(20)));
  world.with([](Cluster& cluster) {
    cluster.add_namespace("dhc");
    cluster.set_config_map("dhc", "policy", {{"policy.yaml", kPolicy}});
  });
  CHECK(program.says("configuration accepted", Seconds(20)));
  stops_in_time(program);
}
