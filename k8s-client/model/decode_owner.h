#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// A ReplicaSet or StatefulSet, whole or as PartialObjectMetadata; `owner.kind` says which is expected.
bool read_owner(JsonObject root, Fault& fault, const KeptFields& kept, Owner& owner);

}  // namespace dhc::k8s
