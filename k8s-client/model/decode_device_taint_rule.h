#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// The part of a DeviceTaintRule that we read. **Source:** resource.k8s.io/v1, KEP-5055.
bool read_device_taint_rule(JsonObject root, Fault& fault, const KeptFields& kept, DeviceTaintRule& rule);

}  // namespace dhc::k8s
