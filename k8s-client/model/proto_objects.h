#pragma once
#include <string_view>

#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"
#include "k8s-client/model/reading.h"

namespace dhc::k8s::proto {

// The part of each kind that we read, as the functions of the same name in k8s read it from JSON.

/// **Source:** core/v1 generated.proto, Pod.
bool read_pod(std::string_view message, Fault& fault, const KeptFields& kept, Pod& pod);

/// **Source:** resource/v1 generated.proto, ResourceClaim.
bool read_resource_claim(std::string_view message, Fault& fault, const KeptFields& kept, ResourceClaim& claim);

/// **Source:** resource/v1 generated.proto, ResourceSlice.
bool read_resource_slice(std::string_view message, Fault& fault, const KeptFields& kept, ResourceSlice& slice);

/// **Source:** core/v1 generated.proto, Node.
bool read_node(std::string_view message, Fault& fault, const KeptFields& kept, Node& node);

/// **Source:** core/v1 generated.proto, Namespace.
bool read_namespace(std::string_view message, Fault& fault, const KeptFields& kept, Namespace& space);

/// **Source:** resource/v1 generated.proto, DeviceTaintRule.
bool read_device_taint_rule(std::string_view message, Fault& fault, const KeptFields& kept, DeviceTaintRule& rule);

/// **Source:** batch/v1 generated.proto, Job.
bool read_job(std::string_view message, Fault& fault, const KeptFields& kept, Job& job);

}  // namespace dhc::k8s::proto
