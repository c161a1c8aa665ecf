#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/pod.h"

namespace dhc::k8s {

/// One entry of a container's `allocatedResourcesStatus`. **Source:** KEP-4680, core/v1 ResourceStatus; `PodStatus` has
/// no such field (k8s.io/api v0.37.1).
bool read_allocated_resource(JsonValue value, Fault& fault, AllocatedResource& resource);

/// What a `...ContainerStatuses` list tells.
struct ContainerReports {
  std::vector<AllocatedResource> allocated;  ///< The entries of all containers.
  std::vector<ContainerExit> exits;          ///< Containers whose state is terminated with another code than 0.
  std::optional<WallTime> last_start;        ///< The latest of all starts of running containers and ends of others.
};
/// What a container's `state` or `lastState` tells.
struct ContainerState {
  std::int64_t exit_code = 0;
  std::optional<WallTime> turned;  ///< Began to run, or ended.
};

/// Notes the kubelet's word for a device's health.
void note_health(std::string_view word, ReportedDevice& device);

/// What a container's status tells of the container itself.
struct ContainerWord {
  std::string name;
  std::int64_t restarts = 0;
  ContainerState state;
  ContainerState before;  ///< `lastState`.
};

/// Notes one container, and that it holds the devices of the entries from number `first` on.
void note_container(const ContainerWord& word, std::size_t first, ContainerReports& reports);

bool read_container_reports(JsonValue value, Fault& fault, ContainerReports& reports);

/// One entry per name, sorted, each device once, sorted: the kubelet's order is random. Of two reports about one device
/// the worse counts, and the containers of both.
[[nodiscard]] std::vector<AllocatedResource> merge_allocated(std::span<std::vector<AllocatedResource>> lists);

}  // namespace dhc::k8s
