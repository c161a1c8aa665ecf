// AMD's device plugin asks a metrics exporter for the health of each card, and calls every card healthy while it is
// away: what such a Healthy is worth.
#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Drivers;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kAmd = "amd.com/gpu";

/// A pod on a card that the exporter has called bad, in an incident whose eviction is not due for long.
struct ExporterWorld : Drivers {
  ExporterWorld() {
    policy().evict->after = 24h;
    send_policy();
    for (const auto* name : {"amd-a", "amd-b"}) cluster.add_node({name, {{kAmd, 4}}, {}, {}});
    PodShape exporter;
    exporter.host_paths = {"/var/lib/amd-metrics-exporter"};
    cluster.create_daemon_set("kube-system", "metrics-exporter", exporter);
    PodShape user;
    user.resource = kAmd;
    cluster.create_stateful_set("default", "p", 1, user);
    run_for(10s);
    node = node_of("p-0");
    card = plugin_device("p-0");
    REQUIRE_FALSE(pod_of("metrics-exporter", node).empty());
    report("Unhealthy");
    run_for(5min);
    REQUIRE(conditions("p-0") == Words{"True"});
  }

  void report(std::string_view health) { cluster.set_device_health(node, card, health); }
  /// For good: its DaemonSet is deleted.
  void delete_exporter() {
    cluster.kubectl_delete(Res::DaemonSets, "kube-system", "metrics-exporter");
    for (const auto& name : cluster.pod_names("kube-system")) {
      if (name.starts_with("metrics-exporter")) cluster.kubectl_delete(Res::Pods, "kube-system", name);
    }
  }
  /// Its container has ended, and its kubelet waits before it begins another.
  void crash_exporter() {
    cluster.store().edit(Res::Pods, {"kube-system", pod_of("metrics-exporter", node)}, [&](Json& changed) {
      auto& container = changed["status"]["containerStatuses"][0];
      const auto began = text(container, {"state", "running", "startedAt"});
      container["state"] = {{"waiting", {{"reason", "CrashLoopBackOff"}}}};
      container["lastState"] = {
          {"terminated",
           {{"exitCode", 2}, {"reason", "Error"}, {"startedAt", began}, {"finishedAt", cluster.store().time_text()}}}};
      container["ready"] = false;
    });
  }
  [[nodiscard]] bool blames_exporter() const {
    for (const auto& verdict : verdicts()) {
      if (verdict.reason == Reason::ReporterRestarted && verdict.message.contains("metrics exporter pod")) return true;
    }
    return false;
  }

  std::string node;
  std::string card;
};

}  // namespace

TEST_CASE("an AMD card that reads Healthy while its exporter runs is believed") {
  ExporterWorld world;
  world.report("Healthy");
  world.run_for(30s);
  CHECK(world.conditions("p-0") == Words{"True", "False"});
}

TEST_CASE("an AMD card that reads Healthy because its exporter has gone stays in its incident") {
  ExporterWorld world;
  SUBCASE("deleted for good") { world.delete_exporter(); }
  SUBCASE("in a crash loop, its container waiting for longer than healthyFor") { world.crash_exporter(); }
  world.run_for(20s);
  world.report("Healthy");
  world.run_for(1h);
  CHECK(world.health("p-0") == "Healthy");
  CHECK(world.conditions("p-0") == Words{"True"});
  CHECK(world.blames_exporter());
  CHECK(world.evictions().empty());
  // The hold of two hours ends it, as where nobody says anything.
  world.run_for(2h);
  CHECK(world.conditions("p-0") == Words{"True", "False"});
}

TEST_CASE("an AMD card whose exporter is replaced stays in its incident, and what the new one calls bad is evicted") {
  ExporterWorld world;
  world.cluster.kubectl_delete(Res::Pods, "kube-system", world.pod_of("metrics-exporter", world.node));
  world.report("Healthy");
  world.run_for(30min);
  REQUIRE_FALSE(world.pod_of("metrics-exporter", world.node).empty());
  CHECK(world.conditions("p-0") == Words{"True"});
  CHECK(world.blames_exporter());
  world.policy().evict->after = 0s;
  world.send_policy();
  world.run_for(30min);
  CHECK(world.evictions().empty());
  world.report("Unhealthy");
  world.run_for(30s);
  CHECK(world.evictions() == Words{"default/p-0"});
}

TEST_CASE("a restart of ours while the exporter is away does not make its plugin's Healthy a repair") {
  ExporterWorld world;
  world.delete_exporter();
  world.report("Healthy");
  world.run_for(5min);
  world.restart_controller();
  world.run_for(30min);
  CHECK(world.health("p-0") == "Healthy");
  CHECK(world.conditions("p-0") == Words{"True"});
}

TEST_CASE("an exporter that goes while no controller watches is missed by the next process, until it is called bad") {
  ExporterWorld world;
  world.hold(k8s::Kind::Pod, true);
  world.delete_exporter();
  world.report("Healthy");
  world.run_for(1min);
  world.restart_controller();
  world.run_for(10min);
  CHECK(world.conditions("p-0") == Words{"True"});
  CHECK(world.blames_exporter());
  SUBCASE("also by the one after it") {
    world.restart_controller();
    world.run_for(30min);
    CHECK(world.conditions("p-0") == Words{"True"});
  }
  SUBCASE("the hold ends it") {
    world.run_for(3h);
    CHECK(world.conditions("p-0") == Words{"True", "False"});
  }
  SUBCASE("what the plugin says bad without one it may take back") {
    world.report("Unhealthy");
    world.run_for(5min);
    world.report("Healthy");
    world.run_for(1min);
    CHECK(world.conditions("p-0") == Words{"True", "False"});
  }
}

TEST_CASE("a plugin that goes on to call the device bad after its exporter went unseen speaks for itself") {
  ExporterWorld world;
  world.hold(k8s::Kind::Pod, true);
  world.delete_exporter();
  world.run_for(1min);
  world.restart_controller();
  world.run_for(10min);
  REQUIRE(world.health("p-0") == "Unhealthy");
  world.report("Healthy");
  world.run_for(1min);
  CHECK(world.conditions("p-0") == Words{"True", "False"});
}

TEST_CASE(
    "a Healthy that was believed while the exporter ran stays believed when it goes while no controller watches") {
  ExporterWorld world;
  world.report("Healthy");
  world.run_for(1min);
  REQUIRE(world.conditions("p-0") == Words{"True", "False"});
  world.hold(k8s::Kind::Pod, true);
  world.delete_exporter();
  world.run_for(1min);
  world.restart_controller();
  world.run_for(15min);
  CHECK(world.conditions("p-0") == Words{"True", "False"});
  CHECK_FALSE(world.blames_exporter());
}

TEST_CASE("a plugin that never had an exporter is believed after a restart of ours") {
  ExporterWorld world;
  world.delete_exporter();
  world.report("Healthy");
  world.run_for(4h);
  REQUIRE(world.conditions("p-0").back() == "False");
  world.report("Unhealthy");
  world.run_for(5min);
  REQUIRE(world.conditions("p-0").back() == "True");
  world.restart_controller();
  world.report("Healthy");
  world.run_for(1min);
  CHECK(world.conditions("p-0").back() == "False");
}
