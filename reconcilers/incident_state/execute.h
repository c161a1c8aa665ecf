#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/incident_state/action.h"

namespace dhc::incident_state {

/// Sends the state once; the same state twice writes nothing.
[[nodiscard]] Status execute(const WriteState& action, const k8s::Client& client, std::stop_token stop);

}  // namespace dhc::incident_state
