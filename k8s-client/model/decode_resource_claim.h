#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/resource_claim.h"

namespace dhc::k8s {

/// The part of a ResourceClaim that we read. **Source:** resource.k8s.io/v1.
bool read_resource_claim(JsonObject root, Fault& fault, const KeptFields& kept, ResourceClaim& claim);

}  // namespace dhc::k8s
