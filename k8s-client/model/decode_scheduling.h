#pragma once
#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/scheduling.h"

namespace dhc::k8s {

/// Reads one field of a pod's spec if it says which nodes the pod accepts; any other is left alone. Of duplicate keys
/// the last counts.
bool read_scheduling_field(std::string_view key, JsonValue value, Fault& fault, SchedulingTerms& terms);

}  // namespace dhc::k8s
