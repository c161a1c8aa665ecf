#include "simulator/api/api.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"

namespace dhc::sim {
namespace {

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string header_of(const k8s::Request& request, std::string_view name) {
  for (const auto& header : request.headers) {
    if (same_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

std::string_view verb_of(const Call& call) {
  switch (call.request.method) {
    case k8s::Method::Get:
      if (call.target.flag("watch")) return "watch";
      return call.path.name.empty() ? "list" : "get";
    case k8s::Method::Post:
      return "create";
    case k8s::Method::Put:
      return "update";
    case k8s::Method::Patch:
      return "patch";
    case k8s::Method::Delete:
      return "delete";
  }
  return "get";
}

Answer forbidden(const Call& call, std::string_view verb, std::string_view resource) {
  const auto& type = type_of(call.res);
  const auto where =
      call.path.ns.empty() ? std::string("at the cluster scope") : fmt::format("in the namespace \"{}\"", call.path.ns);
  const auto group = type.group.empty() ? std::string() : fmt::format(".{}", type.group);
  const auto subject = call.path.name.empty() ? fmt::format("{}{}", type.resource, group)
                                              : fmt::format("{}{} \"{}\"", type.resource, group, call.path.name);
  const auto words = fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}",
                                 subject, call.settings.user, verb, resource, type.group, where);
  return answer_failure(403, "Forbidden", words,
                        {call.path.name, std::string(type.group), std::string(type.resource), Json()});
}

Answer not_served() { return answer_failure(404, "NotFound", "the server could not find the requested resource"); }

/// The resource behind a path, in the one version that it is served in.
std::optional<Res> served_at(const ApiSettings& settings, const ResourcePath& path) {
  const auto res = find_res(path.group, path.resource);
  if (!res || settings.unserved.contains(*res)) return std::nullopt;
  const auto other = settings.versions.find(*res);
  const auto version = other == settings.versions.end() ? type_of(*res).version : std::string_view(other->second);
  return path.version == version ? res : std::nullopt;
}

Answer dispatch(const Call& call) {
  const bool one = !call.path.name.empty();
  const auto& sub = call.path.subresource;
  if (sub == "eviction" && call.res == Res::Pods) return handle_eviction(call);
  if (!sub.empty() && (sub != "status" || !type_of(call.res).has_status)) return not_served();
  switch (call.request.method) {
    case k8s::Method::Get:
      if (call.target.flag("watch")) return handle_watch(call);
      return one ? handle_get(call) : handle_list(call);
    case k8s::Method::Post:
      if (!one) return handle_create(call);
      break;
    case k8s::Method::Put:
      if (one) return handle_update(call);
      break;
    case k8s::Method::Patch:
      if (one) return handle_patch(call);
      break;
    case k8s::Method::Delete:
      if (one) return handle_delete(call);
      break;
  }
  return answer_failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

}  // namespace

std::string Call::header(std::string_view name) const { return header_of(request, name); }

std::string Call::api_version() const {
  return path.group.empty() ? path.version : fmt::format("{}/{}", path.group, path.version);
}

std::string Call::manager() const {
  if (auto named = target.param("fieldManager"); !named.empty()) return named;
  const auto agent = header("user-agent");
  const auto end = agent.find('/');
  return agent.empty() ? "unknown" : agent.substr(0, end);
}

Answer answer_object(const Call& call, unsigned status, const Json& object) {
  Answer answer = answer_json(status, Json::object());
  answer.body = render_object(call.res, object, call.rendering);
  return answer;
}

bool is_denied(const ApiSettings& settings, std::string_view verb, std::string_view resource) {
  return std::ranges::any_of(settings.denials, [&](const Denial& denial) {
    return (denial.verb == "*" || denial.verb == verb) && (denial.resource == "*" || denial.resource == resource);
  });
}

Answer handle(Store& store, const ApiSettings& settings, const k8s::Request& request, const Now& now) {
  if (settings.token && header_of(request, "authorization") != "Bearer " + *settings.token) {
    return answer_failure(401, "Unauthorized", "Unauthorized");
  }
  const auto target = parse_target(request.target);
  if (auto answer = handle_discovery(settings, request, target)) return *std::move(answer);
  const auto path = parse_resource_path(target);
  if (!path) return not_served();
  const auto res = served_at(settings, *path);
  if (!res) return not_served();
  store.set_now(now);
  Call call{store,  settings, request, now,
            target, *path,    *res,    rendering_for(header_of(request, "accept"), target.param("includeObject"))};
  call.rendering.core_event = *res == Res::Events && path->group.empty();
  if (path->version != "v1") call.rendering.api_version = call.api_version();
  call.rendering.now = now.wall;
  const auto verb = verb_of(call);
  const auto resource = path->subresource.empty() ? path->resource : path->resource + "/" + path->subresource;
  if (is_denied(settings, verb, resource)) return forbidden(call, verb, resource);
  return dispatch(call);
}

}  // namespace dhc::sim
