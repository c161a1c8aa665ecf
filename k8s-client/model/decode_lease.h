#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// A Lease's holder and times.
bool read_lease(JsonObject root, Fault& fault, const KeptFields& kept, Lease& lease);

}  // namespace dhc::k8s
