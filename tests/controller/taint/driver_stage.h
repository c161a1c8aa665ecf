#pragma once
#include <string>
#include <vector>

#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

/// A pod on node-a that may be the one that reports on its devices.
struct DriverPod {
  std::string name = "gpu-driver-1";
  SlimVector<SharedText> folders = {"plugins", "plugins_registry"};
  std::string owner = "DaemonSet";
  k8s::PodPhase phase = k8s::PodPhase::Running;
  std::string owner_uid = "uid-ds";
};

/// Put, or put anew, with a container that began at this time by the kubelet's clock.
inline void put_driver(Stage& stage, WallTime began, const DriverPod& spec = {}) {
  k8s::Pod pod;
  pod.meta.ns = "kube-system";
  pod.meta.name = spec.name;
  pod.meta.uid = "uid-" + spec.name;
  pod.meta.creation = WallTime(std::chrono::hours(1));
  if (!spec.owner.empty()) {
    pod.meta.controller =
        k8s::OwnerRef{.api_version = "apps/v1", .kind = spec.owner, .name = "driver", .uid = spec.owner_uid};
  }
  pod.node_name = "node-a";
  pod.phase = spec.phase;
  pod.kubelet_plugin = true;
  pod.plugin_folders = spec.folders;
  pod.last_start = began;
  stage.put(pod);
}

/// The node shows another boot.
inline void boot(Stage& stage, const std::string& boot_id) {
  auto node = stage.node_named("node-a");
  node.boot_id = boot_id;
  stage.put(node);
}

[[nodiscard]] inline std::size_t count_of_conditions(const Stage& stage, bool status) {
  std::size_t count = 0;
  for (const auto& condition : stage.conditions()) {
    if (condition.wanted && condition.wanted->status == status) ++count;
  }
  return count;
}

}  // namespace dhc::test
