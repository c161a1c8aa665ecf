#pragma once
#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/taint/action.h"

namespace dhc::taint {

/// Server-side apply of our rule. Invalid if a part of the selector, which would then select more than one device, or a
/// name is missing. **Source:** KEP-5055, seen on 1.37.1 (section 4 of the project's facts).
[[nodiscard]] Result<k8s::Request> build_rule(const ApplyRule& action);

/// DELETE with UID and version as preconditions. Invalid without a UID.
[[nodiscard]] Result<k8s::Request> build_delete(const DeleteRule& action);

/// JSON patch whose first operation replaces the version, so that a stale one is 409 and not 422.
/// **Source:** seen on 1.37.1.
[[nodiscard]] Result<k8s::Request> build_node_taint(const PatchNodeTaint& action);

}  // namespace dhc::taint
