#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/node.h"

namespace dhc::k8s {

/// The part of a Node that we read.
bool read_node(JsonObject root, Fault& fault, const KeptFields& kept, Node& node);

}  // namespace dhc::k8s
