#include "app/access_review.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "domain/contract/known_owners.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

void add(std::vector<NeededVerb>& all, std::string_view group, std::string_view resource, std::string_view verb) {
  all.push_back({.group = std::string(group),
                 .resource = std::string(resource),
                 .subresource = {},
                 .verb = std::string(verb),
                 .needed_by = "watch",
                 .ns = {},
                 .name = {}});
}
}  // namespace

std::vector<NeededVerb> needed_verbs(Mode mode, bool events, const ConfigMapName* config_map,
                                     const std::string& own_namespace, bool election, bool status) {
  std::vector<NeededVerb> all;
  for (const std::string_view verb : {"list", "watch"}) {
    for (const std::string_view resource : {"pods", "nodes", "namespaces"}) add(all, "", resource, verb);
    for (const std::string_view resource : {"resourceclaims", "resourceslices", "devicetaintrules"}) {
      add(all, "resource.k8s.io", resource, verb);
    }
    add(all, "batch", "jobs", verb);
    for (const std::string_view resource : {"replicasets", "statefulsets"}) add(all, "apps", resource, verb);
    add(all, "policy", "poddisruptionbudgets", verb);
    add(all, "scheduling.k8s.io", "podgroups", verb);
    if (config_map != nullptr) {
      add(all, "", "configmaps", verb);
      all.back().needed_by = "configuration";
      all.back().ns = config_map->ns;
      all.back().name = config_map->name;
    }
  }
  if (election) {
    for (const std::string_view verb : {"get", "list", "watch", "create", "patch"}) {
      add(all, "coordination.k8s.io", "leases", verb);
      all.back().needed_by = "leader election";
      all.back().ns = own_namespace;
      all.back().name = kLeaseName;
    }
  }
  if (!own_namespace.empty()) {
    for (const std::string_view verb : {"list", "watch", "create", "patch"}) {
      add(all, "", "configmaps", verb);
      all.back().needed_by = "state";
      all.back().ns = own_namespace;
      all.back().name = kIncidentsName;
    }
    for (const std::string_view verb : {"list", "watch"}) {
      add(all, "", "configmaps", verb);
      all.back().needed_by = "state of 0.1.0";
      all.back().ns = own_namespace;
      all.back().name = kStateName;
    }
  }
  if (status && !own_namespace.empty()) {
    for (const std::string_view verb : {"create", "patch"}) {
      add(all, "", "configmaps", verb);
      all.back().needed_by = "status";
      all.back().ns = own_namespace;
      all.back().name = kStatusName;
    }
  }
  if (mode == Mode::Enforce) {
    for (const std::string_view verb : {"create", "patch", "delete"}) {
      add(all, "resource.k8s.io", "devicetaintrules", verb);
      all.back().needed_by = "taint";
    }
    add(all, "", "nodes", "patch");
    all.back().needed_by = "taint";
    add(all, "", "pods", "create");
    all.back().subresource = "eviction";
    all.back().needed_by = "evict";
    add(all, "", "pods", "get");
    all.back().needed_by = "evict";
    for (const std::string_view resource : {"resourceclaims", "resourceslices"}) {
      add(all, "resource.k8s.io", resource, "get");
      all.back().needed_by = "evict";
    }
    add(all, "batch", "jobs", "get");
    all.back().needed_by = "evict";
    add(all, "", "pods", "patch");
    all.back().subresource = "status";
    all.back().needed_by = "condition";
    add(all, "batch", "jobs", "patch");
    all.back().needed_by = "jobRetry";
  }
  if (events) {
    add(all, "events.k8s.io", "events", "create");
    all.back().needed_by = "events";
  }
  // Last: the check has little time, and what misses one of these is said again by the first pod that it holds.
  for (const auto& owner : kKnownOwners) {
    add(all, owner.group, owner.resource, "get");
    all.back().needed_by = "opt-out";
  }
  return all;
}

std::vector<NeededVerb> condition_verbs(const Policy& policy) {
  std::vector<NeededVerb> all;
  const bool asked = std::ranges::any_of(policy.policies, [&](const DevicePolicy& one) {
    return one.hand_over && one.hand_over->condition && effective_mode(&one, policy) == Mode::Enforce;
  });
  if (!asked) return all;
  add(all, "", "nodes", "patch");
  all.back().subresource = "status";
  all.back().needed_by = "handOver.nodeCondition";
  return all;
}

std::vector<NeededVerb> object_verbs(const HandOverResource& object, const std::string& plural) {
  std::vector<NeededVerb> all;
  const auto group = object.api_version.substr(0, object.api_version.find('/'));
  for (const std::string_view verb : {"get", "create", "delete"}) {
    if (verb == "delete" && object.keeps) continue;
    add(all, group, plural, verb);
    all.back().needed_by = "handOver.resource";
    all.back().ns = object.ns;
  }
  return all;
}

std::vector<HandOverResource> handed_resources(const Policy& policy) {
  std::vector<HandOverResource> all;
  for (const auto& one : policy.policies) {
    if (!one.hand_over || !one.hand_over->resource || effective_mode(&one, policy) != Mode::Enforce) continue;
    const auto& wanted = *one.hand_over->resource;
    const auto known = std::ranges::find_if(all, [&](const HandOverResource& other) {
      return other.api_version == wanted.api_version && other.kind == wanted.kind && other.ns == wanted.ns;
    });
    if (known == all.end()) {
      all.push_back(wanted);
    } else {
      known->keeps = known->keeps && wanted.keeps;
    }
  }
  return all;
}

k8s::Request build_access_review(const NeededVerb& needed) {
  Json attributes = {{"group", needed.group}, {"resource", needed.resource}, {"verb", needed.verb}};
  if (!needed.subresource.empty()) attributes["subresource"] = needed.subresource;
  if (!needed.ns.empty()) attributes["namespace"] = needed.ns;
  if (!needed.name.empty()) attributes["name"] = needed.name;
  const Json body = {{"apiVersion", "authorization.k8s.io/v1"},
                     {"kind", "SelfSubjectAccessReview"},
                     {"spec", {{"resourceAttributes", std::move(attributes)}}}};
  return k8s::write_request(k8s::Method::Post, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", k8s::kJson,
                            json_text(body));
}

Result<bool> parse_access_review(std::string_view body) {
  const Json answer = read_json<Json>(body);
  const Json* allowed = json_field(answer, {"status", "allowed"});
  if (allowed == nullptr || !allowed->is_boolean()) {
    return fail(ErrorKind::Malformed, "the server's SelfSubjectAccessReview has no status.allowed");
  }
  return allowed->get<bool>();
}

std::string forbidden_line(const NeededVerb& needed) {
  return fmt::format("forbidden: {}{}{}{} {} (needed by: {})", needed.resource, needed.subresource.empty() ? "" : "/",
                     needed.subresource, needed.group.empty() ? "" : fmt::format(".{}", needed.group), needed.verb,
                     needed.needed_by);
}

}  // namespace dhc
