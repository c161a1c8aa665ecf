#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

namespace {

Stage four_in_use() {
  Stage stage;
  stage.node("node-a", 4);
  for (const char* id : {"0", "1", "2", "3"}) {
    stage.pod(
        {.name = std::string("p-") + id, .owner = std::string("ReplicaSet/") + id, .device = std::string("gpu-") + id});
  }
  stage.settle();
  return stage;
}

}  // namespace

TEST_CASE("A plugin that died is silent after a minute: its pods stay Healthy, only allocatable falls") {
  auto stage = four_in_use();
  stage.node("node-a", 4, 0);
  stage.run_for(Seconds(60) - Millis(1), Seconds(10));
  CHECK(stage.verdicts().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle().empty());
  REQUIRE(stage.verdict("node-a", Reason::SilentPlugin) != nullptr);
  CHECK(stage.verdict("node-a", Reason::SilentPlugin)->message ==
        "running pods hold 4 example.com/gpu of which 0 are reported Unhealthy, and only 0 are allocatable: the plugin "
        "is silent, its Healthy means "
        "nothing");
  CHECK(stage.has_event("node-a", "SilentPlugin"));
  stage.node("node-a", 4);
  stage.settle();
  CHECK(stage.verdicts().empty());
}

TEST_CASE("All devices in use and one properly Unhealthy is no silent plugin") {
  auto stage = four_in_use();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.report("p-0", Health::Unhealthy);
  stage.node("node-a", 4, 3);
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.verdict("node-a", Reason::SilentPlugin) == nullptr);
}

TEST_CASE("A device that vanished from the plugin's list shows as lost capacity, until the node boots anew") {
  auto stage = four_in_use();
  stage.remove_pod("p-3");
  stage.node("node-a", 3);
  stage.run_for(Seconds(61), Seconds(1));
  REQUIRE(stage.verdict("node-a", Reason::DeviceVanished) != nullptr);
  CHECK(stage.verdict("node-a", Reason::DeviceVanished)->message ==
        "capacity of example.com/gpu is 3, it was 4 since the node's last boot: a device has vanished from the "
        "plugin's list");
  k8s::Node node;
  node.meta.name = "node-a";
  node.meta.uid = "uid-node-a";
  node.ready = true;
  node.boot_id = "boot-2";
  node.capacity = {{std::string(kGpu), 3}};
  node.allocatable = {{std::string(kGpu), 3}};
  stage.put(node);
  stage.run_for(minutes(3), Seconds(10));
  CHECK(stage.verdicts().empty());
}

TEST_CASE("Healthy after a kubelet restart is not believed until two minutes after the plugin is back") {
  auto stage = four_in_use();
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.report("p-0", Health::Unhealthy);
  stage.node("node-a", 4, 3);
  stage.run_for(minutes(2));
  REQUIRE(stage.reasons("p-0") == "WaitingForEvictAfter NoReplacementDevice");
  // The restart: capacity and allocatable fall to 0, and the pod turns Healthy. Source: seen on 1.37.1.
  stage.node("node-a", 0);
  stage.report("p-0", Health::Healthy);
  stage.run_for(Seconds(30));
  CHECK(stage.reasons("p-0") == "WaitingWhileUnknown NoReplacementDevice");
  stage.node("node-a", 4, 4);
  stage.run_for(minutes(2) - Millis(1), Seconds(10));
  CHECK(stage.reasons("p-0") == "WaitingWhileUnknown");
  SUBCASE("the plugin says Unhealthy again: one incident") {
    stage.report("p-0", Health::Unhealthy);
    stage.node("node-a", 4, 3);
    stage.settle();
    CHECK(stage.reasons("p-0") == "WaitingForEvictAfter NoReplacementDevice");
    CHECK(!stage.has_event("p-0", "Recovered"));
    CHECK(stage.conditions().size() == 1);
  }
  SUBCASE("it stays Healthy: the plugin may have forgotten, as NVIDIA's does") {
    stage.advance(Millis(1));
    stage.settle();
    CHECK(stage.reasons("p-0") == "ReporterRestarted");
    CHECK_FALSE(stage.has_event("p-0", "Recovered"));
    REQUIRE(stage.verdict("p-0", Reason::ReporterRestarted) != nullptr);
    CHECK(stage.verdict("p-0", Reason::ReporterRestarted)
              ->message.starts_with("the registration of example.com/gpu with the kubelet of node-a started at "));
  }
}

}  // namespace dhc::test
