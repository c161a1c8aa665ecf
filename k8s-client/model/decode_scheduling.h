#pragma once
#include <vector>

#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/scheduling.h"

namespace dhc::k8s {

/// The operator that the API's word names.
[[nodiscard]] NodeRequirement::Operator node_operator_of(std::string_view word);

/// Notes a toleration's operator. False: of no meaning to us, and not kept.
[[nodiscard]] bool settle_toleration(std::string_view op, Toleration& toleration);

/// Reads one field of a pod's spec if it says which nodes the pod accepts; any other is left alone. Of duplicate keys
/// the last counts.
bool read_scheduling_field(std::string_view key, JsonValue value, Fault& fault, SchedulingTerms& terms);

/// Reads a list of tolerations, without those that say nothing: with an operator that is not known, or of everybody's.
bool read_tolerations(JsonValue value, Fault& fault, std::vector<Toleration>& tolerations);

}  // namespace dhc::k8s
