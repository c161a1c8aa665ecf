#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A node with eight devices, all held; a second node with eight free ones.
Stage eight() {
  Stage stage;
  stage.limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
  stage.send_policy();
  stage.node("node-a", 8);
  stage.node("node-b", 8);
  for (int i = 0; i < 8; ++i)
    stage.pod(
        {.name = fmt::format("p-{}", i), .owner = fmt::format("ReplicaSet/{}", i), .device = fmt::format("gpu-{}", i)});
  stage.settle();
  return stage;
}

void break_devices(Stage& stage, int count) {
  for (int i = 0; i < count; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy);
  stage.node("node-a", 8, 8 - count);
}

}  // namespace

TEST_CASE("Two of eight devices at once do not engage the brake, three do") {
  auto two = eight();
  break_devices(two, 2);
  CHECK(two.run_for(minutes(2)) == Names{"p-0", "p-1"});
  auto three = eight();
  break_devices(three, 3);
  CHECK(three.run_for(minutes(2)).empty());
  CHECK(three.reasons("p-0") == "Braked");
  CHECK(three.verdict("node-a", Reason::BrakeEngaged)->message ==
        "3 of 8 devices of example.com/gpu on node node-a became Unhealthy within 300 s: new evictions there stop");
  CHECK(three.has_event("node-a", "BrakeEngaged"));
}

TEST_CASE("The brake closes after the window without a new incident, to the millisecond") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(5) - Millis(1), Seconds(10));
  CHECK(stage.reasons("p-0") == "Braked");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-0", "p-1", "p-2"});
}

TEST_CASE("A new incident under the brake holds it for another window") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(4), Seconds(10));
  break_devices(stage, 4);
  CHECK(stage.run_for(minutes(5) - Seconds(1), Seconds(1)).empty());
  CHECK(stage.reasons("p-0") == "Braked");
  CHECK(stage.run_for(Seconds(1)).size() == 4);
}

TEST_CASE("A person's annotation on the node releases the brake for the incidents up to its time") {
  auto stage = eight();
  break_devices(stage, 3);
  stage.run_for(minutes(2));
  CHECK(stage.reasons("p-0") == "Braked");
  k8s::Node node;
  node.meta.name = "node-a";
  node.meta.uid = "uid-node-a";
  node.meta.annotations = {{"device-health.io/brake-release", "2026-11-20T12:01:00Z"}};
  node.ready = true;
  node.boot_id = "boot-1";
  node.capacity = {{std::string(kGpu), 8}};
  node.allocatable = {{std::string(kGpu), 5}};
  stage.put(node);
  CHECK(stage.settle() == Names{"p-0", "p-1", "p-2"});
}

TEST_CASE("Devices that were known to be bad before a restart do not engage the brake again") {
  auto stage = eight();
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  break_devices(stage, 3);
  stage.run_for(minutes(10), Seconds(10));
  stage.restart();
  stage.settle();
  CHECK(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
}

}  // namespace dhc::test
