#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/pod.h"

namespace dhc::k8s {

/// The part of a Pod that we read. Of a pod that cannot hold devices only the identity and the version stay.
bool read_pod(JsonObject root, Fault& fault, const KeptFields& kept, Pod& pod);

}  // namespace dhc::k8s
