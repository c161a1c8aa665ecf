#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace dhc::k8s {

/// True if `name` can stand as one segment of a path and mean nothing else: 1 to 253 bytes, not `.` or `..`, no `/`,
/// `%` or control character. **Source:** apimachinery api/validation/path IsValidPathSegmentName.
[[nodiscard]] bool is_path_segment(std::string_view name);

/// `/api/v1/namespaces/NS/pods/NAME`, percent-encoded; Invalid, naming the bad part, if either is no path segment.
[[nodiscard]] Result<std::string> pod_path(std::string_view ns, std::string_view name);

/// `/apis/resource.k8s.io/v1/namespaces/NS/resourceclaims/NAME`, percent-encoded; Invalid, naming the bad part, if
/// either is no path segment.
[[nodiscard]] Result<std::string> claim_path(std::string_view ns, std::string_view name);

/// `/apis/resource.k8s.io/v1/resourceslices/NAME`, percent-encoded; Invalid if the name is no path segment.
[[nodiscard]] Result<std::string> slice_path(std::string_view name);

/// `/apis/events.k8s.io/v1/namespaces/NS/events`, percent-encoded; Invalid if `ns` is no path segment.
[[nodiscard]] Result<std::string> events_path(std::string_view ns);

/// `/apis/batch/v1/namespaces/NS/jobs`, and one Job in it, percent-encoded; Invalid, naming the bad part, if either is
/// no path segment.
[[nodiscard]] Result<std::string> jobs_path(std::string_view ns);
[[nodiscard]] Result<std::string> job_path(std::string_view ns, std::string_view name);

}  // namespace dhc::k8s
