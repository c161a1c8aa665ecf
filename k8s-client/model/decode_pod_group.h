#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

bool read_pod_group(JsonObject root, Fault& fault, const KeptFields& kept, PodGroup& group);

}  // namespace dhc::k8s
