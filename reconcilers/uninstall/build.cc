#include "reconcilers/uninstall/build.h"

#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc::uninstall {

namespace {
using Json = nlohmann::ordered_json;

/// `ROOT/namespaces/NS/PLURAL/NAME`, without the namespace for cluster-scoped kinds.
Result<std::string> path_of(std::string_view root, std::string_view ns, std::string_view plural,
                            std::string_view name) {
  if (!k8s::is_path_segment(name)) return fail(ErrorKind::Invalid, "the name does not fit in a path");
  if (ns.empty()) return fmt::format("{}/{}/{}", root, plural, k8s::percent_encode(name));
  if (!k8s::is_path_segment(ns)) return fail(ErrorKind::Invalid, "the namespace does not fit in a path");
  return fmt::format("{}/namespaces/{}/{}/{}", root, k8s::percent_encode(ns), plural, k8s::percent_encode(name));
}

Result<std::string> path_of(const Trace& trace) {
  switch (trace.kind) {
    case TraceKind::Rule:
      return path_of("/apis/" + trace.api_version, {}, "devicetaintrules", trace.name);
    case TraceKind::NodeTaint:
    case TraceKind::NodeCondition:
      return path_of("/api/v1", {}, "nodes", trace.name);
    case TraceKind::Object:
      if (trace.path.empty()) return fail(ErrorKind::Invalid, "where the object is is not known");
      return trace.path;
    case TraceKind::Condition:
    case TraceKind::Notice:
      return k8s::pod_path(trace.ns, trace.name);
    case TraceKind::Annotation:
      return path_of("/apis/batch/v1", trace.ns, "jobs", trace.name);
    case TraceKind::StateMap:
    case TraceKind::StatusMap:
    case TraceKind::EarlierStateMap:
      return path_of("/api/v1", trace.ns, "configmaps", trace.name);
    case TraceKind::Lease:
      return path_of("/apis/coordination.k8s.io/v1", trace.ns, "leases", trace.name);
  }
  return fail(ErrorKind::Invalid, "no such kind");
}

/// Of what there is one of; empty: there may be many.
std::string_view name_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::StateMap:
      return kIncidentsName;
    case TraceKind::EarlierStateMap:
      return kStateName;
    case TraceKind::StatusMap:
      return kStatusName;
    case TraceKind::Lease:
      return kLeaseName;
    case TraceKind::Rule:
    case TraceKind::NodeTaint:
    case TraceKind::NodeCondition:
    case TraceKind::Object:
    case TraceKind::Condition:
    case TraceKind::Notice:
    case TraceKind::Annotation:
      break;
  }
  return {};
}

k8s::Request build_delete(std::string path, const Trace& trace) {
  return k8s::write_request(
      k8s::Method::Delete, std::move(path), k8s::kJson,
      json_text({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", trace.uid}}}}));
}

k8s::Request build_patch(const std::string& path, std::string_view type, const Json& body,
                         std::string_view manager = kFieldManager) {
  return k8s::write_request(k8s::Method::Patch, fmt::format("{}?fieldManager={}", path, manager), type,
                            json_text(body));
}

Json without_taints(const Trace& trace) {
  Json operations =
      Json::array({{{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", trace.resource_version}}});
  // From the last: each removal moves those behind it.
  for (const auto place : std::views::reverse(trace.places)) {
    operations.push_back({{"op", "remove"}, {"path", fmt::format("/spec/taints/{}", place)}});
  }
  return operations;
}

Json without_annotations(const Trace& trace) {
  Json annotations = Json::object();
  for (const auto& key : trace.annotations) annotations[key] = nullptr;
  return {{"metadata", {{"uid", trace.uid}, {"annotations", std::move(annotations)}}}};
}

Json without_conditions_on_node(const Trace& trace) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", trace.name}, {"uid", trace.uid}}},
          {"status", {{"conditions", Json::array()}}}};
}

/// What server-side apply removes is what this manager owned and no longer names; other owners keep theirs.
Json without_anything_on_pod(const Trace& trace) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", trace.name}, {"namespace", trace.ns}, {"uid", trace.uid}}},
          {"status", {{"conditions", Json::array()}}}};
}
}  // namespace

Result<k8s::Request> build_get(TraceKind kind, std::string_view ns) {
  const auto name = name_of(kind);
  if (name.empty()) return fail(ErrorKind::Invalid, "not of one name");
  // An empty namespace would make it the path of a cluster-scoped kind.
  if (ns.empty()) return fail(ErrorKind::Invalid, "the namespace is empty");
  Trace trace;
  trace.kind = kind;
  trace.ns = ns;
  trace.name = name;
  auto path = path_of(trace);
  if (!path) return std::unexpected(std::move(path.error()));
  return k8s::read_request(*std::move(path));
}

Result<k8s::Request> build_removal(const Trace& trace) {
  auto path = path_of(trace);
  if (!path) return std::unexpected(std::move(path.error()));
  // Without it an object that took the name since would lose what is its own.
  if (trace.uid.empty()) return fail(ErrorKind::Invalid, "the object has no UID");
  switch (trace.kind) {
    case TraceKind::Condition:
    case TraceKind::Notice:
      return build_patch(*path + "/status", "application/apply-patch+yaml", without_anything_on_pod(trace));
    case TraceKind::NodeCondition:
      return build_patch(*path + "/status", "application/apply-patch+yaml", without_conditions_on_node(trace),
                         kHandOverManager);
    case TraceKind::Annotation:
      return build_patch(*path, "application/merge-patch+json", without_annotations(trace));
    case TraceKind::NodeTaint:
      if (trace.resource_version.empty()) return fail(ErrorKind::Invalid, "the node has no version");
      return build_patch(*path, "application/json-patch+json", without_taints(trace));
    case TraceKind::Rule:
    case TraceKind::Object:
    case TraceKind::StateMap:
    case TraceKind::StatusMap:
    case TraceKind::EarlierStateMap:
    case TraceKind::Lease:
      break;
  }
  return build_delete(*std::move(path), trace);
}

}  // namespace dhc::uninstall
