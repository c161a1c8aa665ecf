#include <algorithm>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"

// Who may create pods in one namespace may write any UID into their owner references. Kubernetes believes such a
// reference only within the namespace, and so do we.
// **Source:** "Owners and Dependents": cross-namespace owner references are disallowed by design.

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE("A pod that names another namespace's owner does not use up that owner's perOwner") {
  Stage stage;
  stage.limits() = {
      .evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 1, .brake_at_least = 1000};
  stage.send_policy();
  stage.node("node-a", 8, 6);
  stage.pod({.name = "web-1", .owner = "RayCluster/web", .device = "gpu-1", .health = Health::Unhealthy});
  stage.pod({.name = "a-forged", .owner = "RayCluster/web", .device = "gpu-0", .health = Health::Unhealthy, .ns = "m"});
  CHECK(stage.run_for(minutes(2)) == Names{"a-forged", "web-1"});
}

TEST_CASE("A pod that names another namespace's Job gets that Job no retry, and does not hold its pods") {
  JobStage stage;
  stage.add_pod(1, Health::Healthy);
  stage.pod({.name = "forged", .owner = "Job/train", .device = "gpu-0", .health = Health::Unhealthy, .ns = "m"});
  stage.run_for(minutes(3));
  CHECK(stage.patches().empty());
  CHECK(stage.job().backoff_limit == 0);

  stage.report("train-1", Health::Unhealthy);
  const auto gone = stage.run_for(minutes(3));
  CHECK(std::ranges::count(gone, "train-1") == 1);
  CHECK(stage.job().backoff_limit == 1);
  CHECK(stage.credits().credits.size() == 1);
}

TEST_CASE("The death of a pod that names another namespace's Job is no loss of that Job") {
  JobStage stage;
  stage.add_pod(1, Health::Healthy);
  stage.pod({.name = "forged", .owner = "Job/train", .device = "gpu-0", .health = Health::Unhealthy, .ns = "m"});
  stage.run_for(Seconds(20));
  stage.end_pod("forged", k8s::PodPhase::Failed);
  stage.run_for(minutes(3));
  CHECK(stage.patches().empty());
  CHECK(stage.job().backoff_limit == 0);
}

TEST_CASE("A Job of another namespace that calls itself a replacement keeps no Job from being made again") {
  JobStage stage;
  stage.policy().job_retry->recreate_once = true;
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(Seconds(20));
  k8s::Job forged;
  forged.meta.ns = "m";
  forged.meta.name = "forged";
  forged.meta.uid = "uid-forged";
  forged.meta.labels = {{std::string(kRecreatedFromLabel), "uid-train"}};
  stage.put(forged);
  stage.fail_job();
  stage.end_pod("train-0", k8s::PodPhase::Failed);
  const auto actions = stage.turn();
  CHECK(std::ranges::count_if(
            actions, [](const Action& action) { return std::holds_alternative<job_retry::RecreateJob>(action); }) == 1);
}

TEST_CASE("A pod of another namespace that names the owner of an evicted pod is not its replacement") {
  Stage stage;
  stage.limits().brake_at_least = 1000;
  stage.send_policy();
  stage.node("node-a", 2, 0);
  stage.node("node-b", 2);
  stage.pod({.name = "a", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "b", .owner = "ReplicaSet/y", .device = "gpu-1", .health = Health::Unhealthy});
  stage.pod({.name = "c", .node = "node-b", .owner = "ReplicaSet/z", .device = "gpu-8"});
  REQUIRE(stage.run_for(minutes(3)) == Names{"a"});
  stage.remove_pod("a");
  stage.remove_pod("c");
  stage.pod({.name = "forged", .node = "node-b", .owner = "ReplicaSet/x", .device = "gpu-9", .ns = "m"}).meta.creation =
      stage.now().wall;
  stage.upsert_pod("forged");
  CHECK(stage.run_for(minutes(2)).empty());  // the one place that is left is that of the true replacement
  CHECK(stage.reasons("b") == "NoReplacementDevice");
}

TEST_CASE("What a pod lost that names another namespace's owner, that owner has not lost") {
  Stage stage;
  stage.policy().evict->untainted = true;
  stage.limits().brake_at_least = 1000;
  stage.send_policy();
  stage.node("node-a", 8, 7);
  stage.pod({.name = "forged", .owner = "RayCluster/web", .device = "gpu-0", .health = Health::Unhealthy, .ns = "m"});
  REQUIRE(stage.run_for(minutes(2)) == Names{"forged"});
  stage.remove_pod("forged");
  stage.pod({.name = "web-1", .owner = "RayCluster/web", .device = "gpu-0", .health = Health::Unhealthy})
      .meta.creation = stage.now().wall;
  stage.upsert_pod("web-1");
  CHECK(stage.run_for(minutes(5)) == Names{"web-1"});
}

}  // namespace dhc::test
