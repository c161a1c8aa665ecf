#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"

namespace dhc::sim {
namespace {

Json version() {
  return {{"major", "1"},
          {"minor", "37"},
          {"emulationMajor", "1"},
          {"emulationMinor", "37"},
          {"minCompatibilityMajor", "1"},
          {"minCompatibilityMinor", "36"},
          {"gitVersion", "v1.37.1"},
          {"gitCommit", "simulator"},
          {"gitTreeState", "clean"},
          {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", "go0"},
          {"compiler", "gc"},
          {"platform", "linux/amd64"}};
}

Json entry(std::string_view name, std::string_view singular, const ResourceType& type, Json verbs) {
  Json out = {{"name", name},
              {"singularName", singular},
              {"namespaced", type.namespaced},
              {"kind", type.kind},
              {"verbs", std::move(verbs)}};
  if (!type.short_name.empty() && !singular.empty()) out["shortNames"] = Json::array({type.short_name});
  return out;
}

Json resources(const ApiSettings& settings, std::string_view group) {
  Json out = Json::array();
  const Json all = {"create", "delete", "get", "list", "patch", "update", "watch"};
  for (const auto& type : all_types()) {
    const bool here = type.group == group || (type.id == Res::Events && group.empty());
    if (!here || settings.unserved.contains(type.id)) continue;
    out.push_back(entry(type.resource, type.singular, type, all));
    if (type.has_status) {
      out.push_back(entry(fmt::format("{}/status", type.resource), "", type, {"get", "patch", "update"}));
    }
    if (type.id == Res::Pods) {
      Json eviction = entry("pods/eviction", "", type, Json::array({"create"}));
      eviction["group"] = "policy";
      eviction["version"] = "v1";
      eviction["kind"] = "Eviction";
      out.push_back(std::move(eviction));
    }
  }
  if (group == "authorization.k8s.io") {
    out.push_back({{"name", "selfsubjectaccessreviews"},
                   {"singularName", "selfsubjectaccessreview"},
                   {"namespaced", false},
                   {"kind", "SelfSubjectAccessReview"},
                   {"verbs", Json::array({"create"})}});
  }
  return out;
}

/// The one that a group's resources are served in.
std::string_view version_of(std::string_view group) {
  for (const auto& type : all_types()) {
    if (type.group == group) return type.version;
  }
  return "v1";
}

Json group_entry(std::string_view group) {
  const auto served = version_of(group);
  const Json version = {{"groupVersion", fmt::format("{}/{}", group, served)}, {"version", served}};
  return {{"name", group}, {"versions", Json::array({version})}, {"preferredVersion", version}};
}

Json groups(const ApiSettings& settings) {
  std::map<std::string_view, bool> names = {{"authorization.k8s.io", true}};
  for (const auto& type : all_types()) {
    if (!type.group.empty() && !settings.unserved.contains(type.id)) names[type.group] = true;
  }
  Json out = Json::array();
  for (const auto& [name, served] : names) out.push_back(group_entry(name));
  return out;
}

Answer resource_list(const ApiSettings& settings, const std::string& group) {
  auto found = resources(settings, group);
  if (found.empty()) return answer_text(404, "404 page not found\n");
  return answer_json(200, {{"kind", "APIResourceList"},
                           {"apiVersion", "v1"},
                           {"groupVersion", group.empty() ? "v1" : fmt::format("{}/{}", group, version_of(group))},
                           {"resources", std::move(found)}});
}

Answer access_review(const ApiSettings& settings, const k8s::Request& request) {
  Json review = Json::parse(request.body, nullptr, false);
  if (!review.is_object()) return answer_failure(400, "BadRequest", "the object provided is unrecognized");
  auto resource = text(review, {"spec", "resourceAttributes", "resource"});
  if (const auto sub = text(review, {"spec", "resourceAttributes", "subresource"}); !sub.empty()) resource += "/" + sub;
  const auto verb = text(review, {"spec", "resourceAttributes", "verb"});
  review["status"] = {{"allowed", !is_denied(settings, verb, resource)}};
  return answer_json(201, review);
}

Answer review_page(const ApiSettings& settings, const Target& target) {
  const auto& segments = target.segments;
  if (segments[0] == "api") {
    if (segments.size() == 1) {
      return answer_json(
          200,
          {{"kind", "APIVersions"}, {"versions", Json::array({"v1"})}, {"serverAddressByClientCIDRs", Json::array()}});
    }
    return resource_list(settings, "");
  }
  if (segments.size() == 1) {
    return answer_json(200, {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", groups(settings)}});
  }
  if (segments.size() == 2) {
    Json group = group_entry(segments[1]);
    group["kind"] = "APIGroup";
    group["apiVersion"] = "v1";
    return answer_json(200, group);
  }
  return resource_list(settings, segments[1]);
}

}  // namespace

std::optional<Answer> handle_discovery(const ApiSettings& settings, const k8s::Request& request, const Target& target) {
  const auto& segments = target.segments;
  if (segments.empty()) return answer_json(200, {{"paths", {"/api", "/apis", "/healthz", "/version"}}});
  const auto& first = segments[0];
  if (segments.size() == 1 && (first == "healthz" || first == "readyz" || first == "livez")) {
    return answer_text(200, "ok");
  }
  if (first == "version") return answer_json(200, version());
  if (segments.back() == "selfsubjectaccessreviews" && request.method == k8s::Method::Post) {
    return access_review(settings, request);
  }
  const bool page = (first == "api" && segments.size() <= 2) || (first == "apis" && segments.size() <= 3);
  if (!page) return std::nullopt;
  const bool bad_version = (first == "api" && segments.size() == 2 && segments[1] != "v1") ||
                           (first == "apis" && segments.size() == 3 && segments[2] != "v1");
  if (bad_version) return answer_text(404, "404 page not found\n");
  return review_page(settings, target);
}

}  // namespace dhc::sim
