#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/script/cluster.h"

namespace dhc::sim {
namespace {

std::string path_of(Res res, const std::string& ns) {
  const auto& type = type_of(res);
  const auto root = type.group.empty() ? std::string("/api/v1") : fmt::format("/apis/{}/{}", type.group, type.version);
  if (!type.namespaced) return fmt::format("{}/{}", root, type.resource);
  return fmt::format("{}/namespaces/{}/{}", root, ns, type.resource);
}

}  // namespace

// An operator has a connection of their own: no scripted fault, no denial, and nothing of it is recorded.
Answer Cluster::kubectl(k8s::Method method, const std::string& path, const std::string& body,
                        std::string_view content) {
  k8s::Request request;
  request.method = method;
  request.target = path;
  request.body = body;
  request.headers.push_back({"Content-Type", std::string(content)});
  auto answer = sim::handle(state_.store, ApiSettings{}, request, now());
  changed();
  step(now());
  return answer;
}

Answer Cluster::kubectl_create(Res res, const Json& object) {
  return kubectl(k8s::Method::Post, path_of(res, ns_of(object)) + "?fieldManager=kubectl-create", object.dump(),
                 "application/json");
}

Answer Cluster::kubectl_patch(Res res, const std::string& ns, const std::string& name, const Json& patch) {
  return kubectl(k8s::Method::Patch, fmt::format("{}/{}?fieldManager=kubectl-patch", path_of(res, ns), name),
                 patch.dump(), "application/merge-patch+json");
}

Answer Cluster::kubectl_delete(Res res, const std::string& ns, const std::string& name) {
  return kubectl(k8s::Method::Delete, path_of(res, ns) + "/" + name, "", "application/json");
}

void Cluster::kubectl_delete_pods_on(const std::string& ns, const std::string& node) {
  for (const auto& name : pod_names(ns)) {
    if (text(*get(Res::Pods, ns, name), {"spec", "nodeName"}) == node) (void)kubectl_delete(Res::Pods, ns, name);
  }
}

void Cluster::serve(Res res, bool served) {
  if (served) {
    settings_.unserved.erase(res);
  } else {
    settings_.unserved.insert(res);
  }
  state_.rules_served = !settings_.unserved.contains(Res::TaintRules);
  state_.store.cut_watches();
  changed();
}

}  // namespace dhc::sim
