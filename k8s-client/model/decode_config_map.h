#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// A ConfigMap's text entries; binaryData is not read.
bool read_config_map(JsonObject root, Fault& fault, const KeptFields& kept, ConfigMap& map);

}  // namespace dhc::k8s
