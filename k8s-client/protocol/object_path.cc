#include "k8s-client/protocol/object_path.h"

#include <algorithm>

#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

namespace {
constexpr std::size_t kLongestName = 253;

bool is_forbidden(char c) { return c == '/' || c == '%' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
}  // namespace

bool is_path_segment(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         std::ranges::none_of(name, is_forbidden);
}

Result<std::string> pod_path(std::string_view ns, std::string_view name) {
  if (!is_path_segment(ns)) return fail(ErrorKind::Invalid, "the pod's namespace is not a name that fits in a path");
  if (!is_path_segment(name)) return fail(ErrorKind::Invalid, "the pod's name is not a name that fits in a path");
  return "/api/v1/namespaces/" + percent_encode(ns) + "/pods/" + percent_encode(name);
}

Result<std::string> claim_path(std::string_view ns, std::string_view name) {
  if (!is_path_segment(ns)) return fail(ErrorKind::Invalid, "the claim's namespace is not a name that fits in a path");
  if (!is_path_segment(name)) return fail(ErrorKind::Invalid, "the claim's name is not a name that fits in a path");
  return "/apis/resource.k8s.io/v1/namespaces/" + percent_encode(ns) + "/resourceclaims/" + percent_encode(name);
}

Result<std::string> slice_path(std::string_view name) {
  if (!is_path_segment(name)) return fail(ErrorKind::Invalid, "the slice's name is not a name that fits in a path");
  return "/apis/resource.k8s.io/v1/resourceslices/" + percent_encode(name);
}

Result<std::string> events_path(std::string_view ns) {
  if (!is_path_segment(ns)) return fail(ErrorKind::Invalid, "the Event's namespace is not a name that fits in a path");
  return "/apis/events.k8s.io/v1/namespaces/" + percent_encode(ns) + "/events";
}

Result<std::string> jobs_path(std::string_view ns) {
  if (!is_path_segment(ns)) return fail(ErrorKind::Invalid, "the Job's namespace is not a name that fits in a path");
  return "/apis/batch/v1/namespaces/" + percent_encode(ns) + "/jobs";
}

Result<std::string> job_path(std::string_view ns, std::string_view name) {
  auto path = jobs_path(ns);
  if (!path) return path;
  if (!is_path_segment(name)) return fail(ErrorKind::Invalid, "the Job's name is not a name that fits in a path");
  return *path + "/" + percent_encode(name);
}

}  // namespace dhc::k8s
