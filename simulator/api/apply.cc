#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"

namespace dhc::sim {
namespace {

struct Conflict {
  std::string manager;
  FieldPath path;
};

std::vector<Conflict> conflicts_of(const Ownership& owners, const Manager& me, const std::map<FieldPath, Json>& wanted,
                                   const std::map<FieldPath, Json>& present) {
  std::vector<Conflict> conflicts;
  for (const auto& [path, value] : wanted) {
    const auto it = present.find(path);
    if (it == present.end() || it->second == value) continue;
    for (const auto& [owner, fields] : owners) {
      const bool mine = owner.name == me.name && owner.applied;
      if (!mine && fields.contains(path)) conflicts.push_back({owner.name, path});
    }
  }
  return conflicts;
}

// **Source:** the structured-merge-diff conflict message, seen on 1.37.1.
Answer refused(const Call& call, const std::vector<Conflict>& conflicts) {
  const auto& type = type_of(call.res);
  Details details{call.path.name, std::string(type.group), std::string(type.resource), Json::array()};
  std::string fields;
  for (const auto& conflict : conflicts) {
    details.causes.push_back(
        cause("FieldManagerConflict",
              fmt::format("conflict with \"{}\" using {}", conflict.manager, api_version_of(call.res)),
              path_text(conflict.path)));
    fields += fmt::format("\n- {}", path_text(conflict.path));
  }
  const auto& first = conflicts.front();
  const auto words = conflicts.size() == 1
                         ? fmt::format("Apply failed with 1 conflict: conflict with \"{}\" using {}: {}", first.manager,
                                       api_version_of(call.res), path_text(first.path))
                         : fmt::format("Apply failed with {} conflicts: conflicts with \"{}\" using {}:{}",
                                       conflicts.size(), first.manager, api_version_of(call.res), fields);
  return answer_failure(409, "Conflict", words, details);
}

Answer create_by_apply(const Call& call, Json wanted, const Manager& me) {
  const auto uid = uid_of(wanted);
  if (!uid.empty()) {
    return answer_failure(409, "Conflict",
                          fmt::format("Operation cannot be fulfilled on {} \"{}\": uid mismatch: the provided object "
                                      "specified uid {}, and no existing object was found",
                                      type_of(call.res).resource, call.path.name, uid),
                          {call.path.name, "", std::string(type_of(call.res).resource), Json()});
  }
  if (!call.path.subresource.empty()) return not_found(call.res, call.path.name);
  // RBAC asks for `create` as well when an apply would create. **Source:** seen on 1.37.1.
  if (is_denied(call.settings, "create", call.path.resource)) {
    return answer_failure(403, "Forbidden",
                          fmt::format("{} \"{}\" is forbidden: User \"{}\" cannot create resource \"{}\"",
                                      call.path.resource, call.path.name, call.settings.user, call.path.resource));
  }
  if (type_of(call.res).namespaced && call.store.get(Res::Namespaces, {"", call.path.ns}) == nullptr) {
    return not_found(Res::Namespaces, call.path.ns);
  }
  const auto fields = owned_fields(wanted);
  set_defaults(call.store, call.res, wanted, nullptr);
  const auto faults = validate(call, wanted, nullptr);
  // An apply is converted late. **Source:** seen on 1.37.1.
  if (!faults.bad_request.empty()) return answer_failure(500, "InternalError", faults.bad_request);
  if (!faults.causes.empty()) return invalid(call.res, call.path.name, faults.causes);
  Ownership owners;
  for (const auto& [path, value] : fields) owners[me].insert(path);
  wanted["metadata"]["managedFields"] =
      managed_fields(owners, std::string(api_version_of(call.res)), call.store.time_text());
  const auto stored = call.store.create(call.res, std::move(wanted));
  call.store.ownership(call.res, call.name()) = std::move(owners);
  return answer_object(call, 201, *stored);
}

bool owned_by_another(const Ownership& owners, const Manager& me, const FieldPath& path) {
  for (const auto& [owner, fields] : owners) {
    if (owner != me && fields.contains(path)) return true;
  }
  return false;
}

}  // namespace

Answer handle_apply(const Call& call, Json wanted) {
  if (call.target.param("fieldManager").empty()) {
    return answer_failure(400, "BadRequest", "fieldManager is required for apply patch");
  }
  if (auto refusal = wrong_type(call, wanted, true)) return *std::move(refusal);
  if (!wanted.contains("metadata") || !wanted["metadata"].is_object()) wanted["metadata"] = Json::object();
  wanted["metadata"]["name"] = call.path.name;
  if (type_of(call.res).namespaced) wanted["metadata"]["namespace"] = call.path.ns;
  const Manager me{call.manager(), true, call.path.subresource};
  const auto before = call.stored();
  if (before == nullptr) return create_by_apply(call, std::move(wanted), me);
  const auto uid = uid_of(wanted);
  if (!uid.empty() && uid != uid_of(*before)) {
    const auto words = fmt::format("Invalid value: \"{}\": field is immutable", uid);
    return invalid(call.res, call.path.name, Json::array({cause("FieldValueInvalid", words, "metadata.uid")}));
  }
  const auto version = text(wanted, {"metadata", "resourceVersion"});
  if (!version.empty() && version != text(*before, {"metadata", "resourceVersion"})) {
    return stale_version(call.res, call.path.name);
  }
  auto fields = owned_fields(wanted);
  const auto here = call.path.subresource == "status" ? "f:status" : "f:spec";
  std::erase_if(fields, [&](const auto& entry) {
    const auto& top = entry.first.front();
    return type_of(call.res).has_status && (top == "f:status" || top == "f:spec") && top != here;
  });
  Ownership owners = call.store.ownership(call.res, call.name());
  const auto conflicts = conflicts_of(owners, me, fields, owned_fields(*before));
  if (!conflicts.empty() && !call.target.flag("force")) return refused(call, conflicts);
  for (const auto& conflict : conflicts) {
    for (auto& [owner, owned] : owners) owned.erase(conflict.path);
  }
  Json after = *before;
  const auto mine_before = owners[me];
  for (const auto& path : mine_before) {
    if (!fields.contains(path) && !owned_by_another(owners, me, path)) erase_field(after, path);
  }
  owners[me].clear();
  for (const auto& [path, value] : fields) {
    set_field(after, path, value);
    owners[me].insert(path);
  }
  std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
  set_defaults(call.store, call.res, after, before.get());
  const auto faults = validate(call, after, before.get());
  // An apply is converted late. **Source:** seen on 1.37.1.
  if (!faults.bad_request.empty()) return answer_failure(500, "InternalError", faults.bad_request);
  if (!faults.causes.empty()) return invalid(call.res, call.path.name, faults.causes);
  auto& stored_owners = call.store.ownership(call.res, call.name());
  if (after == *before && owners == stored_owners) return answer_object(call, 200, *before);
  stored_owners = owners;
  after["metadata"]["managedFields"] =
      managed_fields(owners, std::string(api_version_of(call.res)), call.store.time_text());
  return answer_object(call, 200, *call.store.replace(call.res, std::move(after)));
}

}  // namespace dhc::sim
