#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"

namespace dhc::sim {
namespace {

Json parse_body(const std::string& body) { return Json::parse(body, nullptr, false); }

Answer bad_body(std::string_view why) {
  return answer_failure(400, "BadRequest", fmt::format("the object provided is unrecognized: {}", why));
}

/// What only the server may change stays as it was.
void keep_server_metadata(const Json& before, Json& after) {
  for (const auto* key : {"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
                          "managedFields", "resourceVersion"}) {
    if (before["metadata"].contains(key)) {
      after["metadata"][key] = before["metadata"][key];
    } else {
      after["metadata"].erase(key);
    }
  }
}

/// A write to the object leaves status alone, a write to `status` leaves all else (but metadata) alone.
void keep_other_half(const Call& call, const Json& before, Json& after) {
  if (!type_of(call.res).has_status) return;
  const auto keep = [&](const char* key) {
    if (before.contains(key)) {
      after[key] = before[key];
    } else {
      after.erase(key);
    }
  };
  keep(call.path.subresource == "status" ? "spec" : "status");
}

std::string uid_immutable(const std::string& wanted) {
  return fmt::format("Invalid value: \"{}\": field is immutable", wanted);
}

}  // namespace

Answer commit(const Call& call, const Json& before, Json after) {
  const auto wanted_uid = uid_of(after);
  if (!wanted_uid.empty() && wanted_uid != uid_of(before)) {
    return invalid(call.res, call.path.name,
                   Json::array({cause("FieldValueInvalid", uid_immutable(wanted_uid), "metadata.uid")}));
  }
  const auto wanted_version = text(after, {"metadata", "resourceVersion"});
  if (!wanted_version.empty() && wanted_version != text(before, {"metadata", "resourceVersion"})) {
    return stale_version(call.res, call.path.name);
  }
  if (name_of(after) != call.path.name) {
    return answer_failure(400, "BadRequest", "the name of the object does not match the name on the URL");
  }
  keep_server_metadata(before, after);
  keep_other_half(call, before, after);
  set_defaults(call.store, call.res, after, &before);
  const auto faults = validate(call, after, &before);
  if (!faults.bad_request.empty()) return answer_failure(400, "BadRequest", faults.bad_request);
  if (!faults.causes.empty()) return invalid(call.res, call.path.name, faults.causes);
  if (after == before) return answer_object(call, 200, before);
  auto& owners = call.store.ownership(call.res, call.name());
  take_over(owners, {call.manager(), false, call.path.subresource}, before, after);
  after["metadata"]["managedFields"] =
      managed_fields(owners, std::string(api_version_of(call.res)), call.store.time_text());
  const auto stored = call.store.replace(call.res, std::move(after));
  return answer_object(call, 200, *stored);
}

std::optional<Answer> wrong_type(const Call& call, const Json& body, bool must_say) {
  const auto version = text(body, {"apiVersion"});
  const auto kind = text(body, {"kind"});
  if (must_say && (version.empty() || kind.empty())) return bad_body("apiVersion and kind must be set");
  if (!version.empty() && version != call.api_version()) {
    return bad_body(fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                                version, call.api_version()));
  }
  if (!kind.empty() && kind != type_of(call.res).kind) {
    return bad_body(fmt::format("the kind in the data ({}) does not match {}", kind, type_of(call.res).kind));
  }
  return std::nullopt;
}

Answer handle_create(const Call& call) {
  Json object = parse_body(call.request.body);
  if (!object.is_object()) return bad_body("not a JSON object");
  if (auto refusal = wrong_type(call, object, false)) return *std::move(refusal);
  if (!object.contains("metadata") || !object["metadata"].is_object()) object["metadata"] = Json::object();
  const auto& type = type_of(call.res);
  if (type.namespaced) {
    const auto ns = ns_of(object);
    if (!ns.empty() && ns != call.path.ns) {
      return answer_failure(400, "BadRequest",
                            "the namespace of the provided object does not match the namespace sent on the request");
    }
    object["metadata"]["namespace"] = call.path.ns;
    if (call.store.get(Res::Namespaces, {"", call.path.ns}) == nullptr) return not_found(Res::Namespaces, call.path.ns);
  }
  if (call.rendering.core_event) return answer_failure(400, "BadRequest", "core/v1 Events are read only here");
  set_defaults(call.store, call.res, object, nullptr);
  const auto name = name_of(object);
  const auto faults = validate(call, object, nullptr);
  if (!faults.bad_request.empty()) return answer_failure(400, "BadRequest", faults.bad_request);
  if (!faults.causes.empty()) return invalid(call.res, name, faults.causes);
  if (!name.empty() && call.store.get(call.res, {call.path.ns, name}) != nullptr) {
    const auto full = type.group.empty() ? std::string(type.resource) : fmt::format("{}.{}", type.resource, type.group);
    return answer_failure(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", full, name),
                          {name, std::string(type.group), std::string(type.resource), Json()});
  }
  if (call.target.param("dryRun") == "All") return answer_object(call, 201, object);
  const auto stored = call.store.create(call.res, std::move(object));
  auto& owners = call.store.ownership(call.res, {call.path.ns, name_of(*stored)});
  take_over(owners, {call.manager(), false, ""}, Json::object(), *stored);
  return answer_object(call, 201, *stored);
}

Answer handle_update(const Call& call) {
  const auto before = call.stored();
  if (before == nullptr) return not_found(call.res, call.path.name);
  Json object = parse_body(call.request.body);
  if (!object.is_object() || !object.contains("metadata")) return bad_body("not an object with metadata");
  return commit(call, *before, std::move(object));
}

Answer handle_delete(const Call& call) {
  const auto before = call.stored();
  if (before == nullptr) return not_found(call.res, call.path.name);
  const Json options = call.request.body.empty() ? Json::object() : parse_body(call.request.body);
  if (!options.is_object()) return bad_body("DeleteOptions");
  const auto uid = text(options, {"preconditions", "uid"});
  if (!uid.empty() && uid != uid_of(*before)) {
    return uid_precondition_failed(call.res, call.path.name, uid, uid_of(*before));
  }
  const auto version = text(options, {"preconditions", "resourceVersion"});
  if (const auto stored = text(*before, {"metadata", "resourceVersion"}); !version.empty() && version != stored) {
    return version_precondition_failed(call.res, call.path.name, version, stored);
  }
  std::optional<std::int64_t> grace;
  if (options.contains("gracePeriodSeconds") && options["gracePeriodSeconds"].is_number()) {
    grace = options["gracePeriodSeconds"].get<std::int64_t>();
  }
  call.store.request_delete(call.res, call.name(), grace);
  if (const auto still = call.stored(); still != nullptr) return answer_object(call, 200, *still);
  const auto& type = type_of(call.res);
  return answer_json(200, {{"kind", "Status"},
                           {"apiVersion", "v1"},
                           {"metadata", Json::object()},
                           {"status", "Success"},
                           {"details", {{"name", call.path.name}, {"kind", type.resource}, {"uid", uid_of(*before)}}}});
}

Answer handle_patch(const Call& call) {
  const auto content = call.header("content-type");
  const Json patch = parse_body(call.request.body);
  if (patch.is_discarded()) return bad_body("invalid JSON");
  if (content.starts_with("application/apply-patch+yaml") || content.starts_with("application/apply-patch+json")) {
    return patch.is_object() ? handle_apply(call, patch) : bad_body("an apply needs an object");
  }
  const auto before = call.stored();
  if (before == nullptr) return not_found(call.res, call.path.name);
  Json after = *before;
  // Strategic merge is served as a merge: nothing we accept patches a list by its keys.
  if (content.starts_with("application/merge-patch+json") ||
      content.starts_with("application/strategic-merge-patch+json")) {
    if (!patch.is_object()) return bad_body("a merge patch needs an object");
    after.merge_patch(patch);
  } else if (content.starts_with("application/json-patch+json")) {
    try {
      for (const auto& step : patch) {
        // **Source:** seen on 1.37.1: a test for null passes where there is nothing.
        const bool absent = step.at("op") == "test" && step.at("value").is_null() &&
                            !after.contains(Json::json_pointer(step.at("path").get<std::string>()));
        if (!absent) after = after.patch(Json::array({step}));
      }
    } catch (const Json::exception&) {
      // **Source:** seen on 1.37.1: a failed `test` answers 422.
      return answer_failure(422, "Invalid", "the server rejected our request due to an error in our request");
    }
  } else {
    return answer_failure(415, "UnsupportedMediaType",
                          "the body of the request was in an unknown format - accepted media types include: "
                          "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  }
  if (!after.contains("metadata") || !after["metadata"].is_object()) return bad_body("metadata is missing");
  return commit(call, *before, std::move(after));
}

}  // namespace dhc::sim
