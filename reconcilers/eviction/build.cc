#include "reconcilers/eviction/build.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
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
  return json_text(body);
}

Result<k8s::Request> quick_read(Result<std::string> path) {
  if (!path) return std::unexpected(std::move(path.error()));
  auto request = k8s::read_request(std::move(*path));
  request.timeouts.idle = Seconds(10);
  request.timeouts.total = Seconds(10);
  return request;
}
}  // namespace

Result<k8s::Request> build_eviction(const EvictPod& action) {
  auto path = k8s::pod_path(action.ns, action.name);
  if (!path) return std::unexpected(std::move(path.error()));
  // An empty UID would be no precondition at all, and a pod that took the name since would be evicted.
  if (action.uid.empty()) return fail(ErrorKind::Invalid, "the pod to evict has no UID");
  auto request = k8s::write_request(k8s::Method::Post, *path + "/eviction", k8s::kJson, body_of(action));
  request.timeouts.idle = Seconds(35);
  request.timeouts.total = Seconds(35);
  return request;
}

Result<k8s::Request> build_read(const std::string& ns, const std::string& pod) {
  return quick_read(k8s::pod_path(ns, pod));
}

Result<k8s::Request> build_claim_read(const std::string& ns, const std::string& claim) {
  return quick_read(k8s::claim_path(ns, claim));
}

Result<k8s::Request> build_job_read(const std::string& ns, const std::string& job) {
  return quick_read(k8s::job_path(ns, job));
}

Result<k8s::Request> build_slice_read(const std::string& slice) { return quick_read(k8s::slice_path(slice)); }

}  // namespace dhc::eviction
