#pragma once
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/status/action.h"

namespace dhc::status {

/// Server-side apply of the status ConfigMap, with who writes it (`instance`: our pod's name or the host's) and when.
/// Forced: what another hand has written there is no word of ours. Invalid if a name does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_status(const WriteStatus& action, std::string_view instance);

}  // namespace dhc::status
