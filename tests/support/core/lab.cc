#include "tests/support/core/lab.h"

#include <fmt/format.h>

namespace dhc::test {
namespace {

Now start_of_time() {
  using std::chrono::hours;
  return {MonoTime(hours(1)), std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(18)};
}

const sim::Json& first_device(const sim::Json& pod) {
  static const sim::Json none = sim::Json::object();
  for (const auto& container : sim::list(pod, {"status", "containerStatuses"})) {
    for (const auto& entry : sim::list(container, {"allocatedResourcesStatus"})) {
      for (const auto& device : sim::list(entry, {"resources"})) return device;
    }
  }
  return none;
}

}  // namespace

Lab::Lab(std::uint64_t seed) : now(start_of_time()), cluster(seed, now) {}

void Lab::run_for(Millis span) {
  const auto end = now.mono + span;
  cluster.step(now);
  while (true) {
    const auto wake = cluster.next_wake();
    const auto next = wake && *wake < end ? std::max(*wake, now.mono) : end;
    now = {next, now.wall + (next - now.mono)};
    cluster.step(now);
    if (next == end) return;
  }
}

sim::Answer Lab::ask(k8s::Method method, const std::string& target, const std::string& body,
                     const std::string& content_type, const std::string& accept) {
  k8s::Request request;
  request.method = method;
  request.target = target;
  request.body = body;
  if (!content_type.empty()) request.headers.push_back({"Content-Type", content_type});
  if (!accept.empty()) request.headers.push_back({"Accept", accept});
  return cluster.handle(request, now);
}

sim::Json Lab::body_of(const sim::Answer& answer) const { return sim::Json::parse(answer.body, nullptr, false); }

sim::Answer Lab::evict(const std::string& pod_name, const std::string& uid_wanted) {
  sim::Json body = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod_name}}}};
  if (!uid_wanted.empty()) body["deleteOptions"]["preconditions"]["uid"] = uid_wanted;
  return ask(k8s::Method::Post, fmt::format("/api/v1/namespaces/default/pods/{}/eviction", pod_name), body.dump(),
             "application/json");
}

sim::Answer Lab::merge(const std::string& target, const sim::Json& patch) {
  return ask(k8s::Method::Patch, target, patch.dump(), "application/merge-patch+json");
}

sim::Answer Lab::apply(const std::string& target, sim::Json wanted, const std::string& manager, bool force) {
  const auto path = sim::parse_resource_path(sim::parse_target(target));
  if (const auto res = path ? sim::find_res(path->group, path->resource) : std::nullopt; res) {
    wanted["apiVersion"] = path->group.empty() ? path->version : path->group + "/" + path->version;
    wanted["kind"] = sim::type_of(*res).kind;
  }
  return ask(k8s::Method::Patch, fmt::format("{}?fieldManager={}{}", target, manager, force ? "&force=true" : ""),
             wanted.dump(), "application/apply-patch+yaml");
}

sim::Answer Lab::patch(const std::string& target, const std::string& operations) {
  return ask(k8s::Method::Patch, target, operations, "application/json-patch+json");
}

sim::Json Lab::object(sim::Res res, const std::string& name) const {
  const auto found = cluster.get(res, "default", name);
  return found == nullptr ? sim::Json() : *found;
}

sim::Json Lab::cluster_object(sim::Res res, const std::string& name) const {
  const auto found = cluster.get(res, "", name);
  return found == nullptr ? sim::Json() : *found;
}

sim::Json Lab::pod(const std::string& name) const { return object(sim::Res::Pods, name); }

std::string Lab::uid(const std::string& pod_name) const { return sim::uid_of(pod(pod_name)); }

std::vector<std::string> Lab::live(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& name : cluster.pod_names("default")) {
    const auto found = pod(name);
    if (name.starts_with(prefix) && !sim::is_deleting(found) && !sim::is_terminal(found)) names.push_back(name);
  }
  return names;
}

std::string Lab::health(const std::string& pod_name) const {
  return sim::text(first_device(pod(pod_name)), {"health"});
}

std::string Lab::health_message(const std::string& pod_name) const {
  return sim::text(first_device(pod(pod_name)), {"message"});
}

std::string Lab::plugin_device(const std::string& pod_name) const {
  return sim::text(first_device(pod(pod_name)), {"resourceID"});
}

std::string Lab::dra_device(const std::string& pod_name) const {
  const auto found = pod(pod_name);
  for (const auto& pod_claim : sim::list(found, {"spec", "resourceClaims"})) {
    const auto claim = object(sim::Res::Claims, sim::claim_name_of(found, pod_claim));
    for (const auto& result : sim::list(claim, {"status", "allocation", "devices", "results"})) {
      return sim::text(result, {"device"});
    }
  }
  return {};
}

std::int64_t Lab::allocatable(const std::string& node, const std::string& resource) const {
  return sim::number(cluster_object(sim::Res::Nodes, node), {"status", "allocatable", resource}, -1);
}

std::int64_t Lab::capacity(const std::string& node, const std::string& resource) const {
  return sim::number(cluster_object(sim::Res::Nodes, node), {"status", "capacity", resource}, -1);
}

}  // namespace dhc::test
