#pragma once
#include <vector>

#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/model/pod.h"

namespace dhc::k8s {

/// What one init container asks for.
struct InitRequest {
  std::vector<ResourceAmount> limits;
  bool sidecar = false;  ///< `restartPolicy: Always`: it keeps what it has. **Source:** KEP-753.
};

/// Notes what a container runs that asks for devices: its limits, or claims. Init containers hold none that the kubelet
/// reports.
void note_image(ContainerImage image, const std::vector<ResourceAmount>& limits, bool has_claims,
                std::vector<ContainerImage>& images);

/// The limits of all containers added up, sorted by name, and what those run that ask for devices. Limits, because an
/// extended resource's request always equals its limit. **Source:** core/v1 validation.
bool read_containers(JsonValue value, Fault& fault, std::vector<ResourceAmount>& sum,
                     std::vector<ContainerImage>& images);

/// Adds one container's limits. False, with the fault set, if the sum does not fit.
bool add_limits(const std::vector<ResourceAmount>& limits, Fault& fault, std::vector<ResourceAmount>& sum);

bool read_init_request(JsonValue value, Fault& fault, InitRequest& request);

/// What the whole pod needs at its worst moment, sorted by name: containers and sidecars together, or one init
/// container and the sidecars before it. False if a sum does not fit. **Source:** k/k PodRequests.
[[nodiscard]] bool total_requests(const std::vector<ResourceAmount>& containers, const std::vector<InitRequest>& init,
                                  std::vector<ResourceAmount>& total);

}  // namespace dhc::k8s
