// `plan` against a simulated API server: what it says, that it writes nothing, and what it says when it cannot look.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "simulator/server.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/program.h"

namespace dhc::test {

namespace {

constexpr const char* kResource = "example.com/gpu";
constexpr const char* kPolicy = R"(apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: all}
spec:
  mode: enforce
  match: {}
  after: 30s
  evict: {}
)";

/// A node of four devices and a Deployment of two pods, one of which holds a device that is bad.
struct PlanCluster {
  sim::Server server{1, read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";
  std::string policy = folder.write("policy.yaml", kPolicy);
  std::string bad;

  PlanCluster() {
    REQUIRE(server.write_kubeconfig(kubeconfig));
    with([](sim::Cluster& cluster) {
      cluster.add_node({"node-a", {{kResource, 4}}, {}, {}});
      sim::PodShape shape;
      shape.resource = kResource;
      cluster.create_deployment("default", "infer", 2, shape);
    });
    REQUIRE(eventually([&] {
      with([&](sim::Cluster& cluster) {
        const auto holders = cluster.holders("node-a", "GPU-0");
        if (!holders.empty()) bad = holders.front();
      });
      return !bad.empty();
    }));
    with([](sim::Cluster& cluster) { cluster.set_device_health("node-a", "GPU-0", "Unhealthy"); });
  }

  void with(const std::function<void(sim::Cluster&)>& work) {
    server.with_cluster([&](sim::Cluster& cluster, const Now&) { work(cluster); });
  }

  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> all = {"plan", "--kubeconfig", kubeconfig};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

}  // namespace

TEST_CASE("plan says what a new configuration would do to the cluster as it is, and writes nothing") {
  PlanCluster world;
  REQUIRE(eventually([&] {
    Program program(world.arguments({"-f", world.policy, "-o", "json"}));
    REQUIRE(program.ended(Seconds(60)) == 0);
    const auto json = nlohmann::json::parse(program.out());
    return json["devicesUnhealthy"] == 1;  // once the kubelet has told it
  }));
  Program program(world.arguments({"-f", world.policy}));
  REQUIRE(program.ended(Seconds(60)) == 0);
  CAPTURE(program.out());
  CHECK(program.out().contains("1 nodes, 2 pods with devices, 1 of the devices Unhealthy. Nothing was changed."));
  CHECK(
      program.out().contains("Note: today's configuration: ConfigMap device-health-system/device-health-controller "
                             "does not exist"));
  CHECK(program.out().contains("Pod " + world.bad));
  CHECK(program.out().contains("WouldEvict in 1m30s"));
  CHECK(program.err().empty());
  std::vector<std::string> written;
  world.with([&](sim::Cluster& cluster) {
    for (const auto& request : cluster.writes()) written.push_back(request.target);
  });
  CHECK(written == std::vector<std::string>{});
}

TEST_CASE("plan says which pauses stand, those of annotations and those of the files") {
  PlanCluster world;
  world.with([](sim::Cluster& cluster) {
    cluster.set_config_map("device-health-system", "device-health-controller", {{"policy.yaml", kPolicy}});
  });
  const auto operate = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--kubeconfig", world.kubeconfig});
    Program program(arguments);
    REQUIRE(program.ended(Seconds(60)) == 0);
  };
  operate({"pause", "--for", "2h", "--reason", "new switches"});
  operate({"pause", "--node", "node-a", "--for", "1h", "--reason", "risers"});
  REQUIRE(eventually([&] {
    Program program(world.arguments({}));
    return program.ended(Seconds(60)) == 0 && program.out().contains("WouldEvict");  // once the kubelet has told it
  }));
  const Folder folder;
  const auto stopped = folder.write("paused.yaml", std::string(kPolicy) + R"(---
apiVersion: device-health.io/v1alpha1
kind: ControllerLimits
metadata: {name: default}
spec: {paused: true}
)");
  Program program(world.arguments({"-f", stopped}));
  REQUIRE(program.ended(Seconds(60)) == 0);
  CAPTURE(program.out());
  const auto& out = program.out();
  CHECK(out.contains("Note: today's configuration: paused until 2"));
  CHECK(out.contains(": new switches\n"));
  CHECK(out.contains(" for node node-a"));
  CHECK(out.contains("WouldEvict"));
  CHECK(out.contains(": risers\nNote: the new configuration: ControllerLimits has paused: true\n"));
}

TEST_CASE("plan without a configuration anywhere is an error that says how to make one") {
  PlanCluster world;
  Program program(world.arguments({}));
  CHECK(program.ended(Seconds(60)) == 1);
  CHECK(program.err().starts_with("error: today's configuration: ConfigMap device-health-system/"));
}

TEST_CASE("plan names every mistake of the new configuration before it looks at the cluster") {
  const Folder folder;
  const auto bad = folder.write("bad.yaml",
                                "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n"
                                "metadata: {name: a}\nspec: {mode: enforce, macth: {}}\n");
  Program program({"plan", "--kubeconfig", "/nowhere/kubeconfig", "-f", bad});
  CHECK(program.ended(Seconds(10)) == 1);
  CHECK(program.err().contains(bad + ":4:"));
  CHECK(program.err().contains("match"));
}

TEST_CASE("plan names the kind that it may not list, at once") {
  PlanCluster world;
  world.with([](sim::Cluster& cluster) {
    sim::Fault forbidden;
    forbidden.path_contains = "/nodes";
    forbidden.status = 403;
    forbidden.count = -1;
    cluster.faults().add(forbidden);
  });
  Program program(world.arguments({"-f", world.policy}));
  CHECK(program.ended(Seconds(20)) == 1);
  CHECK(program.err().starts_with("error: Node could not be listed: "));
}

TEST_CASE("plan gives up on a server that nobody reaches, and says so") {
  const Folder folder;
  const auto kubeconfig = folder.write("kubeconfig", R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)");
  const auto policy = folder.write("policy.yaml", kPolicy);
  Program program({"plan", "--kubeconfig", kubeconfig, "-f", policy});
  CHECK(program.ended(Seconds(40)) == 1);
  CHECK(program.err().contains("could not be listed: "));
}

TEST_CASE("plan refuses a time that it cannot look ahead") {
  Program program({"plan", "--within", "25h"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().contains("--within '25h'"));
}

}  // namespace dhc::test
