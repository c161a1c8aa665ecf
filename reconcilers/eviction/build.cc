#include "reconcilers/eviction/build.h"

#include <nlohmann/json.hpp>

#include "k8s-client/protocol/object_path.h"

namespace dhc::eviction {

namespace {
using Json = nlohmann::ordered_json;

std::string body_of(const EvictPod& action) {
  Json options = {{"preconditions", {{"uid", action.uid}}}};
  if (action.grace_period_seconds) options["gracePeriodSeconds"] = *action.grace_period_seconds;
  const Json body = {{"apiVersion", "policy/v1"},
                     {"kind", "Eviction"},
                     {"metadata", {{"name", action.name}, {"namespace", action.ns}}},
                     {"deleteOptions", std::move(options)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}
}  // namespace

Result<k8s::Request> build_eviction(const EvictPod& action) {
  auto path = k8s::pod_path(action.ns, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  // An empty UID would be no precondition at all, and a pod that took the name since would be evicted.
  if (action.uid.empty()) return fail(ErrorKind::Invalid, "the pod to evict has no UID");
  k8s::Request request;
  request.method = k8s::Method::Post;
  request.target = *path + "/eviction";
  request.headers = {{"Accept", "application/json"}, {"Content-Type", "application/json"}};
  request.body = body_of(action);
  request.timeouts.idle = Seconds(35);
  request.timeouts.total = Seconds(35);
  return request;
}

}  // namespace dhc::eviction
