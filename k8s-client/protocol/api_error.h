#pragma once
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// The remedy for a response that is not 2xx, from its status and the Kubernetes Status in its body (which may be
/// absent, text or HTML). The message is the server's own sentence, with that of a DisruptionBudget cause appended (it
/// names the PDB), cut to 1,024 characters.
/// **Source:** design.md section 9; recordings of 1.37.1.
[[nodiscard]] Error error_from_response(const Response& response);

/// The same for the Status object inside an ERROR event of a watch, in JSON or protobuf.
[[nodiscard]] Error error_from_status_object(std::string_view body);

}  // namespace dhc::k8s
