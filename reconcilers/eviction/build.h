#pragma once
#include <string>

#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// The Eviction request of one pod: policy/v1, with the UID as precondition (invariant I1) and 35 s in all, because the
/// server itself retries for 10 s. Invalid if a name does not fit in a path or the UID is empty.
/// **Source:** policy/v1 Eviction, seen on 1.37.1.
[[nodiscard]] Result<k8s::Request> build_eviction(const EvictPod& action);

/// A quorum read (no resourceVersion) of one pod, and of one claim: 10 s in all, because an eviction waits for it.
/// Invalid if a name does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_read(const std::string& ns, const std::string& pod);
[[nodiscard]] Result<k8s::Request> build_claim_read(const std::string& ns, const std::string& claim);

/// The same of the Job that the pod is of; Invalid if a name does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_job_read(const std::string& ns, const std::string& job);

/// The same of the slice that publishes the bad device; Invalid if its name does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_slice_read(const std::string& slice);

}  // namespace dhc::eviction
