#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/world.h"

namespace dhc {

/// The workload that a pod belongs to, as `NAMESPACE/KIND/NAME`: the topmost of the controllers above it that the World
/// knows of (a Deployment, CronJob, JobSet, RayCluster), or the pod itself. By name, so that a workload that is deleted
/// and made anew is the same one; in the pod's own namespace, so that nobody speaks of another tenant's.
[[nodiscard]] std::string workload_of(const k8s::Pod& pod, const World& world);

/// The workloads whose pods hold the device now, each once, sorted.
[[nodiscard]] std::vector<std::string> workloads_on(const DeviceKey& key, const World& world);

/// How many physical devices of a driver or resource the workload's pods hold now; 0 of a pod without a controller.
/// Looks at every controller that has pods with devices: ask seldom.
[[nodiscard]] std::int64_t devices_held_by(std::string_view workload, const std::string& scope, const World& world);

/// `Deployment ml/server`, as people read it; what a tenant wrote is cut and made one line.
[[nodiscard]] std::string words_of_workload(std::string_view workload);

}  // namespace dhc
