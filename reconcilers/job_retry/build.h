#pragma once
#include <string>
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/job_retry/action.h"

namespace dhc::job_retry {

/// The patch of one Job. By version: a merge patch with metadata.resourceVersion, stale is 409. By test: a JSON patch
/// that tests UID, limit and annotations; a failed test is 422. Invalid if a name does not fit in a path or the UID or
/// version is empty.
/// **Source:** seen on 1.37.1: one merge patch changes backoffLimit and annotations of a running Job.
[[nodiscard]] Result<k8s::Request> build_patch(const PatchJob& action);

/// What the answer to a patch means: a failed test is a conflict, not a mistake of ours. **Source:** seen on 1.37.1:
/// 422.
[[nodiscard]] Status judged(const PatchJob& action, Status status);

/// Reads the dead Job.
[[nodiscard]] Result<k8s::Request> build_read(const RecreateJob& action);

/// Reads what has the replacement's name, and says whether it is the replacement. **Source:** a create that a quota's
/// own conflict has refused is 409 too (apiserver, plugin/resourcequota), beside AlreadyExists.
[[nodiscard]] Result<k8s::Request> build_look(const RecreateJob& action);
[[nodiscard]] bool is_replacement(const RecreateJob& action, std::string_view body);

/// The create request of the replacement, from the dead Job's own JSON: its spec without selector, generated labels and
/// status; the name follows from the dead Job's UID, so that sending it twice makes one Job. Conflict if `body` is
/// another Job by now, Invalid if it must not be recreated (an owner, a manual selector, itself a replacement),
/// Malformed if it cannot be read. **Source:** batch/v1, labels and selector that the API server generates.
[[nodiscard]] Result<k8s::Request> build_replacement(const RecreateJob& action, std::string_view body);

}  // namespace dhc::job_retry
