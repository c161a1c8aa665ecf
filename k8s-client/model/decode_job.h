#pragma once
#include "k8s-client/model/job.h"
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"

namespace dhc::k8s {

/// A whole Job; of a finished one only identity, owner, our annotations and conditions are kept.
bool read_job(JsonObject root, Fault& fault, const KeptFields& kept, Job& job);

}  // namespace dhc::k8s
