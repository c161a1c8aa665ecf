#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/resource_slice.h"

namespace dhc::k8s {

/// The part of a ResourceSlice that we read. **Source:** resource.k8s.io/v1.
bool read_resource_slice(JsonObject root, Fault& fault, const KeptFields& kept, ResourceSlice& slice);

}  // namespace dhc::k8s
