#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/contract/owner_share.h"
#include "domain/contract/subject.h"

namespace dhc {

/// The workload that a pod belongs to, as `NAMESPACE/KIND/NAME`: the topmost of the controllers above it that the World
/// knows of (a Deployment, CronJob, JobSet, RayCluster), or the pod itself. By name, so that a workload that is deleted
/// and made anew is the same one; in the pod's own namespace, so that nobody speaks of another tenant's.
[[nodiscard]] std::string workload_of(const k8s::Pod& pod, const World& world);

/// That controller; null: it has none that is known.
[[nodiscard]] const k8s::OwnerRef* top_controller_of(const k8s::Pod& pod, const World& world);

/// Likewise, as what a verdict is about.
[[nodiscard]] std::optional<Subject> top_subject_of(const k8s::Pod& pod, const World& world);

/// The workload by its topmost controller; by its name alone where none of its pods is left, or that has none.
[[nodiscard]] Subject subject_of_workload(const std::string& workload, const World& world);

/// Whether a pod that has not ended holds the device.
[[nodiscard]] bool is_held(const DeviceKey& key, const World& world);

/// The workloads whose pods hold the device now, each once, sorted.
[[nodiscard]] std::vector<std::string> workloads_on(const DeviceKey& key, const World& world);

/// The pods of the workload that can hold devices and have a controller.
[[nodiscard]] std::vector<const PodRecord*> pods_of_workload(std::string_view workload, const World& world);

/// How many physical devices of a driver or resource the workload's pods hold now; 0 of a pod without a controller.
[[nodiscard]] std::int64_t devices_held_by(std::string_view workload, const std::string& scope, const World& world);

/// The places of the cards that the workload holds of the device's driver or resource, one for each card.
[[nodiscard]] std::vector<const HeldCards::Place*> places_of(std::string_view workload, const DeviceKey& key,
                                                             const World& world);

/// Since when a driver or plugin must have begun to be as new as the one of this place; none: that is not known.
[[nodiscard]] std::optional<WallTime> as_new_as(const HeldCards::Place& place);

/// What share the workload has of the held devices of the device's driver or resource, or of those whose driver or
/// plugin is as new as this device's if that is more, as while an update is rolled out; and of those on the device's
/// node. 1 where nothing is known.
[[nodiscard]] OwnerShare share_of(std::string_view workload, const DeviceKey& key, const World& world);

/// Up to when somebody vouches for the pod's workload: the latest word that is written on the pod or on a controller
/// above it that is watched. None: nobody does, or the time is ahead of the clock.
[[nodiscard]] std::optional<WallTime> vouched_until(const k8s::Pod& pod, const World& world, WallTime now);

/// How many devices on the same node others than these workloads hold that are not bad.
[[nodiscard]] std::int64_t well_beside(const DeviceKey& key, const std::vector<std::string>& workloads,
                                       const World& world);

/// `Deployment ml/server`, as people read it; what a tenant wrote is cut and made one line.
[[nodiscard]] std::string words_of_workload(std::string_view workload);

}  // namespace dhc
