#pragma once
#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/incident_state/action.h"

namespace dhc::incident_state {

/// Server-side apply of the state ConfigMap. Forced, as nothing else of ours is: whoever has edited the entry owns it
/// by then, and every later apply would be refused. Invalid if a name does not fit in a path. **Source:** seen
/// on 1.37.1.
[[nodiscard]] Result<k8s::Request> build_state(const WriteState& action);

}  // namespace dhc::incident_state
