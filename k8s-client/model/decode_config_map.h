#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// A ConfigMap's text entries; binaryData is not read.
bool read_config_map(JsonObject root, Fault& fault, ConfigMap& map);

}  // namespace dhc::k8s
