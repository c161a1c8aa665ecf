#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// A Namespace: its metadata.
bool read_namespace(JsonObject root, Fault& fault, const KeptFields& kept, Namespace& space);

}  // namespace dhc::k8s
