#pragma once
#include <string>
#include <utility>
#include <vector>

#include "domain/cluster/driver_taints.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

inline constexpr std::string_view kXid = "gpu.example.com/xid";

[[nodiscard]] inline k8s::Taint xid(std::string value, std::string effect = "NoSchedule") {
  return {.key = std::string(kXid), .value = std::move(value), .effect = std::move(effect)};
}

/// What a driver publishes on node-a: gpu-0 with these taints, gpu-1 with those.
struct Published {
  std::vector<k8s::Taint> first = {};
  std::vector<k8s::Taint> second = {};
  std::int64_t generation = 1;
  std::string name = "slice";
};

inline void publish_taints(Stage& stage, const Published& what) {
  k8s::ResourceSlice slice;
  slice.meta.name = what.name;
  slice.meta.uid = "uid-" + what.name;
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.generation = what.generation;
  slice.node_name = "node-a";
  slice.devices = {{.name = "gpu-0", .taints = what.first}, {.name = "gpu-1", .taints = what.second}};
  stage.put(std::move(slice));
}

/// A pod on gpu-0, of which the kubelet says Unknown for ever.
inline void hold_device(Stage& stage) {
  stage.pod({.name = "train-1", .owner = "Job/t", .health = k8s::Health::Unknown, .claim = "c"});
  stage.claim("c", {"gpu-0"}, "train-1");
}

/// A policy that asks for the driver's taint, and nobody on the device.
[[nodiscard]] inline Stage silent_driver() {
  Stage stage;
  stage.policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 0);
  return stage;
}

/// The same with a pod on gpu-0, of which the kubelet says Unknown for ever.
[[nodiscard]] inline Stage held_device() {
  auto stage = silent_driver();
  publish_taints(stage, {});
  hold_device(stage);
  stage.settle();
  return stage;
}

}  // namespace dhc::test
