#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/cluster/world.h"

namespace dhc {
namespace {

const Now kNoon{.mono = MonoTime(std::chrono::hours(100)), .wall = WallTime(std::chrono::days(20'000))};

k8s::Pod pod_of_version(const std::string& version) {
  k8s::Pod pod;
  pod.meta.ns = "team";
  pod.meta.name = "train";
  pod.meta.uid = "40a44c2a-56f2-4107-99f8-000000000001";
  pod.meta.resource_version = version;
  pod.meta.has_annotations = version == "2";
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.requests = {{.resource = "vendor.com/gpu", .amount = 1}};
  pod.allocated = {{.name = "vendor.com/gpu",
                    .devices = {{.resource_id = "GPU-40a44c2a-56f2-4107-99f8-000000000001",
                                 .health = k8s::Health::Healthy,
                                 .message = {}}}}};
  return pod;
}

TEST_CASE("A pod's UID and its device's ID are kept once, however often the pod has changed") {
  World world;
  for (const auto* version : {"1", "2"}) {
    world.apply(k8s::Upsert{pod_of_version(version)}, kNoon);
    world.refresh(kNoon);
  }
  const auto& [uid, record] = *world.pods().begin();
  CHECK(record.pod.meta.has_annotations);
  CHECK(record.pod.meta.uid.view().data() == uid.view().data());
  CHECK(world.pods_on("node-a").front().view().data() == uid.view().data());
  REQUIRE(record.held_devices.size() == 1);
  const auto& key = record.held_devices.front().key;
  CHECK(record.pod.allocated.front().devices.front().resource_id.view().data() == key.device.view().data());
  const auto found = world.tracker().devices().find(key);
  REQUIRE(found != world.tracker().devices().end());
  CHECK(found->first.device.view().data() == key.device.view().data());
  CHECK(found->second.holders.front().view().data() == uid.view().data());
}

}  // namespace
}  // namespace dhc
