#include "reconcilers/shared/object_requests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/object_path.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

/// Of `apps/v1`: what stands before and behind the slash.
std::string_view group_of(const ObjectName& object) {
  return std::string_view(object.api_version).substr(0, object.api_version.find('/'));
}
std::string_view version_of(const ObjectName& object) {
  const auto slash = object.api_version.find('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(object.api_version).substr(slash + 1);
}

std::string group_path(const ObjectName& object) {
  return fmt::format("/apis/{}/{}", k8s::percent_encode(group_of(object)), k8s::percent_encode(version_of(object)));
}

/// Whether paths can name the object.
Status check_name(const ObjectName& object) {
  const bool is_whole = k8s::is_path_segment(group_of(object)) && k8s::is_path_segment(version_of(object)) &&
                        k8s::is_path_segment(object.name) && (object.ns.empty() || k8s::is_path_segment(object.ns));
  if (is_whole && !object.incident.empty()) return {};
  return fail(ErrorKind::Invalid, "the object has no usable name");
}

/// A read that was not answered: the write was not sent.
Error as_unread(Error error) {
  switch (error.kind) {
    case ErrorKind::Doubtful:
    case ErrorKind::Unavailable:
    case ErrorKind::TimedOut:
    case ErrorKind::TooManyRequests:
      error.kind = ErrorKind::Unread;
      break;
    default:
      break;
  }
  return error;
}

}  // namespace

std::string_view plural_of(std::string_view path) {
  path = path.substr(0, path.rfind('/'));
  return path.substr(path.rfind('/') + 1);
}

ObjectName object_of(const std::string& slot, const HandedObject& object) {
  return {.slot = slot,
          .api_version = object.api_version,
          .kind = object.kind,
          .ns = object.ns,
          .name = object.name,
          .incident = object.incident,
          .node = object.node,
          .policy = object.policy};
}

std::string title_of(const ObjectName& object) {
  return fmt::format("{} {}{}{}", object.kind, object.ns, object.ns.empty() ? "" : "/", object.name);
}

Result<k8s::Request> build_kinds(const ObjectName& object) {
  if (const auto named = check_name(object); !named) return std::unexpected(named.error());
  return build_object_read(group_path(object));
}

Result<k8s::Request> build_group(const ObjectName& object) {
  if (const auto named = check_name(object); !named) return std::unexpected(named.error());
  return build_object_read(fmt::format("/apis/{}", k8s::percent_encode(group_of(object))));
}

Result<std::vector<ObjectName>> other_versions(const ObjectName& object, const Result<k8s::Response>& group) {
  std::vector<ObjectName> others;
  if (!group && group.error().kind == ErrorKind::NotFound) return others;
  if (!group) return std::unexpected(as_unread(group.error()));
  const Json served = read_json<Json>(group->body);
  if (!served.is_object() || json_field(served, {"versions"}) == nullptr)
    return fail(ErrorKind::Malformed, "the API server's list of versions cannot be read");
  for (const Json& one : json_list(served, {"versions"})) {
    const auto version = json_string(one, {"version"});
    if (version == version_of(object) || !k8s::is_path_segment(version)) continue;
    auto& other = others.emplace_back(object);
    other.api_version = fmt::format("{}/{}", group_of(object), version);
  }
  return others;
}

Result<std::string> object_path(const ObjectName& object, const Result<k8s::Response>& kinds) {
  const auto not_served = [&] {
    return fail(ErrorKind::Invalid,
                fmt::format("kind {} of {} is not served: install its CustomResourceDefinition, or mend "
                            "handOver.resource.template",
                            object.kind, object.api_version));
  };
  if (!kinds) {
    if (kinds.error().kind == ErrorKind::NotFound) return not_served();
    return std::unexpected(as_unread(kinds.error()));
  }
  const Json list = read_json<Json>(kinds->body);
  if (!list.is_object() || json_field(list, {"resources"}) == nullptr)
    return fail(ErrorKind::Malformed, "the API server's list of kinds cannot be read");
  for (const Json& one : json_list(list, {"resources"})) {
    const auto plural = json_string(one, {"name"});
    if (json_string(one, {"kind"}) != object.kind || plural.contains('/') || !k8s::is_path_segment(plural)) continue;
    const bool is_namespaced = json_true(one, {"namespaced"});
    if (is_namespaced == object.ns.empty()) {
      return fail(ErrorKind::Invalid, is_namespaced
                                          ? fmt::format("{} is in namespaces: write metadata.namespace in "
                                                        "handOver.resource.template",
                                                        object.kind)
                                          : fmt::format("{} is cluster-scoped: remove metadata.namespace from "
                                                        "handOver.resource.template",
                                                        object.kind));
    }
    const auto space = is_namespaced ? "/namespaces/" + k8s::percent_encode(object.ns) : std::string();
    return fmt::format("{}{}/{}/{}", group_path(object), space, plural, k8s::percent_encode(object.name));
  }
  return not_served();
}

k8s::Request build_object_read(const std::string& path) {
  auto request = k8s::read_request(path);
  request.timeouts.total = kReadTime;
  return request;
}

Result<k8s::Request> build_creation(const ObjectName& object, const std::string& text, std::string_view path) {
  const Json whole = read_json<Json>(text);
  if (json_string(whole, {"metadata", "name"}) != object.name)
    return fail(ErrorKind::Invalid, "the object's text is not that of the object");
  return k8s::write_request(k8s::Method::Post,
                            fmt::format("{}?fieldManager={}", path.substr(0, path.rfind('/')), kHandOverManager),
                            k8s::kJson, text);
}

k8s::Request build_deletion(const std::string& path, std::string_view uid) {
  const Json options = {{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"preconditions", {{"uid", uid}}},
                        {"propagationPolicy", "Background"}};
  return k8s::write_request(k8s::Method::Delete, path, k8s::kJson, json_text(options));
}

Result<ObjectSighting> sighting_of(const ObjectName& object, const Result<k8s::Response>& answer) {
  if (!answer) {
    if (answer.error().kind == ErrorKind::NotFound) return ObjectSighting{};
    return std::unexpected(as_unread(answer.error()));
  }
  const Json found = read_json<Json>(answer->body);
  ObjectSighting sighting{.standing = ObjectStanding::Foreign, .uid = json_string(found, {"metadata", "uid"})};
  if (sighting.uid.empty()) return fail(ErrorKind::Malformed, "what the API server says of the object cannot be read");
  if (json_string(found, {"metadata", "labels", kManagedByLabel}) != kManagedBy) return sighting;
  const auto incident = json_string(found, {"metadata", "annotations", kIncidentAnnotation});
  if (incident.empty()) return sighting;
  const bool is_leaving = !json_string(found, {"metadata", "deletionTimestamp"}).empty();
  sighting.standing = incident == object.incident ? ObjectStanding::Ours
                      : is_leaving                ? ObjectStanding::Leaving
                                                  : ObjectStanding::Earlier;
  return sighting;
}

Error with_remedy(Error error, const ObjectName& object, std::string_view path) {
  if (error.kind == ErrorKind::Forbidden) {
    error.message += fmt::format("; get, create and delete of {}.{} are needed: see docs/hand-over.md", plural_of(path),
                                 group_of(object));
  } else if (error.kind == ErrorKind::NotFound) {
    // Of a creation: its namespace is not there, or its kind has just gone.
    error.kind = ErrorKind::Invalid;
    error.message = fmt::format("{}: {}; create the namespace, or mend handOver.resource.template", title_of(object),
                                error.message);
  }
  return error;
}

}  // namespace dhc
