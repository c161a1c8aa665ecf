#pragma once
#include "simulator/api/store.h"

namespace dhc::sim {

/// The causes of a 422 for this status of a pod; an empty list: it is acceptable. **Source:** core/v1 validation of
/// pod status, seen on 1.37.1: a health word of `allocatedResourcesStatus` that the server does not know.
[[nodiscard]] Json faults_of_status(const Store& store, const Json& pod);

}  // namespace dhc::sim
