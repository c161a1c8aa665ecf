#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/job_retry/action.h"

namespace dhc::job_retry {

/// Patches the Job once. Conflict: it has changed since it was read (409, or 422 of a patch that tests): plan again.
/// Safe to repeat: what was tested, or the version, is another by then.
[[nodiscard]] Status execute(const PatchJob& action, const k8s::Client& client, std::stop_token stop);

/// Reads the dead Job and creates its replacement; one that is already there counts as done. Two requests.
[[nodiscard]] Status execute(const RecreateJob& action, const k8s::Client& client, const std::stop_token& stop);

}  // namespace dhc::job_retry
