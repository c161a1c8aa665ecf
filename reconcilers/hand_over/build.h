#pragma once
#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/hand_over/action.h"

namespace dhc::hand_over {

/// Server-side apply to the node's status, never forced: a condition of the same type that another wrote is Contested.
/// Conflict means another node under that name; Invalid if a name or the UID is missing.
/// **Source:** seen on 1.37.1: a UID in the applied object is a precondition; a kubelet keeps conditions that it does
/// not know.
[[nodiscard]] Result<k8s::Request> build_conditions(const ApplyNodeConditions& action);

}  // namespace dhc::hand_over
