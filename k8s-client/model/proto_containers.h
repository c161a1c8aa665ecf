#pragma once
#include <vector>

#include "k8s-client/model/allocated_status.h"
#include "k8s-client/model/pod_requests.h"
#include "k8s-client/model/proto_reading.h"

namespace dhc::k8s::proto {

/// One container's limits, and whether it is a sidecar. **Source:** core/v1 generated.proto, Container.
bool read_request(const Value& value, Fault& fault, InitRequest& request);

/// Adds one container's limits, and what it runs.
bool read_container(const Value& value, Fault& fault, std::vector<ResourceAmount>& sum,
                    std::vector<ContainerImage>& images);

/// Adds what one ContainerStatus tells. **Source:** core/v1 generated.proto, ContainerStatus; KEP-4680.
bool read_container_report(const Value& value, Fault& fault, ContainerReports& reports);

}  // namespace dhc::k8s::proto
