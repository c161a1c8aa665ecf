// Nothing that a tenant can make holds another tenant's eviction for long (invariant I19).
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A pod that waits for a node and asks for one device; nothing else that it asks for is known to us.
void pending(Stage& stage, const std::string& name, const std::string& ns) {
  auto& pod = stage.pod({.name = name, .node = {}, .owner = {}, .phase = k8s::PodPhase::Pending, .ns = ns});
  pod.requests = {{std::string(kGpu), 1}};
  stage.upsert_pod(name);
}

/// web-1 on the bad gpu-0 beside web-2; the third device comes free only when web-1 has gone. Another tenant lives in
/// `mallory`.
Stage two_tenants() {
  Stage stage;
  stage.policy().evict->hold_without_replacement = true;
  stage.send_policy();
  stage.node("node-a", 3, 2);
  stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1"});
  return stage;
}

/// The other tenant makes its pod anew each half minute, for so long; gives who was evicted meanwhile.
std::vector<std::string> crowd(Stage& stage, Millis time) {
  std::vector<std::string> gone;
  const auto start = stage.now().mono;
  for (int round = 0; stage.now().mono - start < time; ++round) {
    if (round > 0) stage.remove_pod(fmt::format("never-{}", round - 1));
    pending(stage, fmt::format("never-{}", round), "mallory");
    for (auto& name : stage.run_for(Seconds(30))) {
      gone.push_back(std::move(name));
    }
  }
  return gone;
}

}  // namespace

TEST_CASE("A pod that another tenant keeps Pending holds an eviction for ten minutes, and not for ever") {
  auto stage = two_tenants();
  pending(stage, "never", "mallory");
  CHECK(stage.run_for(Seconds(60) + minutes(10) - Millis(1), Seconds(10)).empty());
  CHECK(stage.reasons("web-1") == "NoReplacementDevice");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("Pods that another tenant makes anew again and again hold an eviction no longer than one does") {
  auto stage = two_tenants();
  SUBCASE("for the place that comes free with the pod") {}
  SUBCASE("for a place that is free") {
    stage.pod({.name = "web-3", .owner = "ReplicaSet/z", .device = "gpu-2"});
    stage.node("node-b", 1);
  }
  CHECK(crowd(stage, minutes(10)).empty());
  CHECK(crowd(stage, minutes(2)) == Names{"web-1"});
}

TEST_CASE("A tenant's own Pending pods come before the replacement, however long they wait") {
  auto stage = two_tenants();
  pending(stage, "queued", "default");
  CHECK(stage.run_for(hours(3), minutes(1)).empty());
  stage.node("node-b", 1);
  CHECK(stage.run_for(Seconds(60)) == Names{"web-1"});
}

TEST_CASE("With no place but for another tenant's pods a half-open brake tries nobody for ten minutes, and then one") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
  stage.limits().brake_trial_after = minutes(2);
  stage.send_policy();
  stage.node("node-a", 8, 0);
  stage.node("node-b", 1);
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .device = fmt::format("gpu-{}", i),
               .health = Health::Unhealthy});
  }
  CHECK(crowd(stage, minutes(10)).empty());
  CHECK(crowd(stage, minutes(3)) == Names{"p-0"});
}

}  // namespace dhc::test
