#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

bool read_disruption_budget(JsonObject root, Fault& fault, const KeptFields& kept, DisruptionBudget& budget);

}  // namespace dhc::k8s
