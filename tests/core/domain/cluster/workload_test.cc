#include "domain/cluster/workload.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/support/core/fixtures.h"

namespace dhc::test {

namespace {

k8s::OwnerRef ref(const std::string& api, const std::string& kind, const std::string& name) {
  return {.api_version = api, .kind = kind, .name = name, .uid = "uid-" + name};
}

k8s::Pod pod_of(std::optional<k8s::OwnerRef> controller) {
  k8s::Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = "p";
  pod.meta.uid = "uid-p";
  pod.meta.controller = std::move(controller);
  return pod;
}

void put(World& world, const std::string& ns, k8s::Kind kind, const std::string& name,
         std::optional<k8s::OwnerRef> controller) {
  const Now now{.mono = MonoTime(Seconds(1)), .wall = WallTime(Seconds(1'800'000'000))};
  if (kind == k8s::Kind::Job) {
    k8s::Job job;
    job.meta.ns = ns;
    job.meta.name = name;
    job.meta.uid = "uid-" + name;
    job.meta.controller = std::move(controller);
    world.apply(k8s::Delivery(k8s::Upsert{std::move(job)}), now);
    return;
  }
  k8s::Owner owner;
  owner.kind = kind;
  owner.meta.ns = ns;
  owner.meta.name = name;
  owner.meta.uid = "uid-" + name;
  owner.meta.controller = std::move(controller);
  world.apply(k8s::Delivery(k8s::Upsert{std::move(owner)}), now);
}

const Now kHolding{.mono = MonoTime(Seconds(1)), .wall = WallTime(Seconds(1'800'000'000))};

/// A running pod that holds a device of a plugin.
void hold(World& world, const std::string& ns, std::optional<k8s::OwnerRef> controller, const std::string& node,
          const std::string& device, k8s::Health health = k8s::Health::Healthy) {
  k8s::Pod pod;
  pod.meta.ns = ns;
  pod.meta.name = controller ? "p-" + device : "solo";
  pod.meta.uid = "uid-p-" + device;
  pod.meta.resource_version = "1";
  pod.meta.controller = std::move(controller);
  pod.node_name = node;
  pod.phase = k8s::PodPhase::Running;
  pod.allocated = {{.name = "example.com/gpu", .devices = {{.resource_id = device, .health = health, .message = {}}}}};
  world.apply(k8s::Delivery(k8s::Upsert{std::move(pod)}), kHolding);
}

}  // namespace

TEST_CASE("Of the cards that are held a workload has those of all its controllers, and a shared card once") {
  World world;
  const auto job = [](const std::string& name, const std::string& uid) {
    return k8s::OwnerRef{.api_version = "batch/v1", .kind = "Job", .name = name, .uid = uid};
  };
  hold(world, "ml", job("a", "uid-a"), "node-a", "GPU-0::0");
  hold(world, "ml", job("b", "uid-b"), "node-a", "GPU-0::1");
  hold(world, "ml", job("a", "uid-a"), "node-a", "GPU-1");
  hold(world, "ml", std::nullopt, "node-a", "GPU-2");
  hold(world, "ml2", job("a", "uid-a"), "node-b", "GPU-3");
  hold(world, "ml", job("b", "uid-b"), "node-b", "GPU-4", k8s::Health::Unhealthy);
  hold(world, "ml", job("a", "uid-a-made-anew"), "node-b", "GPU-5");
  world.refresh(kHolding);
  const auto key = [](const std::string& node, const std::string& id) {
    return DeviceKey::plugin(node, "example.com/gpu", id);
  };
  CHECK(share_of("ml/Job/a", key("node-a", "GPU-1"), world) == OwnerShare{.scope = 3.0 / 6, .node = 2.0 / 3});
  CHECK(share_of("ml/Job/a", key("node-b", "GPU-5"), world) == OwnerShare{.scope = 3.0 / 6, .node = 1.0 / 3});
  CHECK(share_of("ml/Job/b", key("node-a", "GPU-0::1"), world) == OwnerShare{.scope = 2.0 / 6, .node = 1.0 / 3});
  CHECK(share_of("ml/Pod/solo", key("node-a", "GPU-2"), world) == OwnerShare{.scope = 1.0 / 6, .node = 1.0 / 3});
  CHECK(share_of("ml2/Job/a", key("node-b", "GPU-3"), world) == OwnerShare{.scope = 1.0 / 6, .node = 1.0 / 3});
  CHECK(share_of("ml/Job/unknown", key("node-a", "GPU-1"), world) == OwnerShare{.scope = 1, .node = 1});
  CHECK(share_of("ml/Job/a", key("node-c", "GPU-9"), world) == OwnerShare{.scope = 1, .node = 1});
  CHECK(well_beside(key("node-a", "GPU-1"), {"ml/Job/a"}, world) == 1);
  CHECK(well_beside(key("node-b", "GPU-5"), {"ml/Job/a"}, world) == 1);
  CHECK(well_beside(key("node-b", "GPU-5"), {"ml/Job/a", "ml2/Job/a"}, world) == 0);
}

TEST_CASE("A pod's workload is the topmost controller that the World knows of, and a bare pod is its own") {
  World world;
  put(world, "ml", k8s::Kind::ReplicaSet, "rs", ref("apps/v1", "Deployment", "server"));
  put(world, "ml", k8s::Kind::Job, "job", ref("batch/v1", "CronJob", "nightly"));
  put(world, "ml", k8s::Kind::Job, "alone", std::nullopt);
  CHECK(workload_of(pod_of(ref("apps/v1", "ReplicaSet", "rs")), world) == "ml/Deployment/server");
  CHECK(workload_of(pod_of(ref("batch/v1", "Job", "job")), world) == "ml/CronJob/nightly");
  CHECK(workload_of(pod_of(ref("batch/v1", "Job", "alone")), world) == "ml/Job/alone");
  CHECK(workload_of(pod_of(ref("ray.io/v1", "RayCluster", "ray")), world) == "ml/RayCluster/ray");
  CHECK(workload_of(pod_of(ref("apps/v1", "ReplicaSet", "unseen")), world) == "ml/ReplicaSet/unseen");
  CHECK(workload_of(pod_of(std::nullopt), world) == "ml/Pod/p");
}

TEST_CASE("Another namespace's controller is nobody's workload here, and a circle of owners ends") {
  World world;
  put(world, "other", k8s::Kind::ReplicaSet, "rs", ref("apps/v1", "Deployment", "victim"));
  CHECK(workload_of(pod_of(ref("apps/v1", "ReplicaSet", "rs")), world) == "ml/ReplicaSet/rs");
  put(world, "ml", k8s::Kind::ReplicaSet, "a", ref("apps/v1", "StatefulSet", "b"));
  put(world, "ml", k8s::Kind::StatefulSet, "b", ref("apps/v1", "ReplicaSet", "a"));
  CHECK(workload_of(pod_of(ref("apps/v1", "ReplicaSet", "a")), world).starts_with("ml/"));
}

TEST_CASE("A workload is told by kind, namespace and name, on one line") {
  CHECK(words_of_workload("ml/Deployment/server") == "Deployment ml/server");
  CHECK(words_of_workload("ml/Evil\nKind/x") == "Evil Kind ml/x");
  CHECK(words_of_workload("odd") == "odd");
  CHECK(words_of_workload("") == "");
}

}  // namespace dhc::test
