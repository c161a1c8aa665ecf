#include "domain/findings/policy_coverage.h"

#include <vector>

#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

using namespace dhc;

namespace {

/// Two nodes with four plugin devices each, one of them with three DRA devices; a pod of each kind holds one.
test::Stage cluster() {
  test::Stage stage;
  stage.node("node-a", 4);
  stage.node("node-b", 4);
  stage.slice("node-a", {"gpu-0", "gpu-1", "gpu-2"});
  stage.pod({.name = "web", .device = "GPU-0"});
  stage.claim("train-gpu", {"gpu-0"}, "train");
  stage.pod({.name = "train", .owner = "Job/train", .claim = "train-gpu"});
  stage.send_policy();
  return stage;
}

/// The coverage after the policy's match was changed so, as one would read it from the log.
template <class Change>
std::vector<PolicyCoverage> coverage_with(Change change) {
  auto stage = cluster();
  change(stage, stage.policy());
  stage.send_policy();
  stage.turn();
  return stage.controller().take_coverage();
}

PolicyCoverage covers(std::int64_t devices, std::int64_t held) {
  return {.policy = "p", .mode = Mode::Enforce, .devices = devices, .held = held};
}

using Coverage = std::vector<PolicyCoverage>;

}  // namespace

TEST_CASE("A policy covers the devices that its resources, drivers and nodes name, held or free") {
  CHECK(coverage_with([](test::Stage&, DevicePolicy&) {}) == Coverage{covers(11, 2)});
  CHECK(coverage_with([](test::Stage&, DevicePolicy& policy) { policy.match.resources = {"example.com/*"}; }) ==
        Coverage{covers(8, 1)});
  CHECK(coverage_with([](test::Stage&, DevicePolicy& policy) { policy.match.drivers = {"gpu.*"}; }) ==
        Coverage{covers(3, 1)});
  CHECK(coverage_with([](test::Stage& stage, DevicePolicy& policy) {
          stage.node_named("node-b").meta.labels = {{"pool", "b"}};
          stage.put(stage.node_named("node-b"));
          policy.match.nodes.requirements = {{"pool", LabelSelector::Operator::Exists, {}}};
        }) == Coverage{covers(4, 0)});
}

TEST_CASE("A policy whose names no device has covers none, and selectors over pods count for held devices alone") {
  CHECK(coverage_with([](test::Stage&, DevicePolicy& policy) { policy.match.drivers = {"gpu.nvidia.com"}; }) ==
        Coverage{covers(0, 0)});
  CHECK(coverage_with([](test::Stage&, DevicePolicy& policy) {
          policy.match.pods.requirements = {{"app", LabelSelector::Operator::Exists, {}}};
        }) == Coverage{covers(11, 0)});
}

TEST_CASE("Coverage is said once for each configuration, in the order of the policies") {
  auto stage = cluster();
  auto off = stage.policy();
  off.name = "a";
  off.mode = Mode::Off;
  off.match.drivers = {"gpu.example.com"};
  stage.whole_policy().policies.insert(stage.whole_policy().policies.begin(), off);
  stage.send_policy();
  stage.turn();
  const auto first = stage.controller().take_coverage();
  REQUIRE(first.size() == 2);
  CHECK(first[0] == PolicyCoverage{.policy = "a", .mode = Mode::Off, .devices = 3, .held = 1});
  CHECK(first[1] == covers(11, 2));
  stage.turn();
  CHECK(stage.controller().take_coverage().empty());
  stage.send_policy();
  stage.turn();
  CHECK(stage.controller().take_coverage().size() == 2);
}

TEST_CASE("Coverage waits until everything was listed, and a standby says it too") {
  auto stage = cluster();
  stage.turn();
  stage.controller() = Controller();
  stage.send_policy();
  stage.turn();
  CHECK(stage.controller().take_coverage().empty());
  stage.restart();
  stage.deliver(Leading{.leads = false});
  stage.turn();
  CHECK(stage.controller().take_coverage() == Coverage{covers(11, 2)});
}
