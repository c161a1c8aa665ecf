#pragma once
#include <optional>
#include <string>

#include "simulator/api/api.h"

namespace dhc::sim {

/// One request, understood: what the handlers work on.
struct Call {
  Store& store;
  const ApiSettings& settings;
  const k8s::Request& request;
  Now now;
  Target target;
  ResourcePath path;
  Res res = Res::Pods;
  Rendering rendering;

  [[nodiscard]] Name name() const { return {path.ns, path.name}; }
  [[nodiscard]] ObjectPtr stored() const { return store.get(res, name()); }
  /// As the body of a write has to say it, such as `resource.k8s.io/v1`.
  [[nodiscard]] std::string api_version() const;
  /// The writer's name: `fieldManager`, else the first word of User-Agent.
  [[nodiscard]] std::string manager() const;
  /// The first request header of that name in any case, or empty.
  [[nodiscard]] std::string header(std::string_view name) const;
};

/// `object` as the caller wants to see it.
[[nodiscard]] Answer answer_object(const Call& call, unsigned status, const Json& object);

// One handler a verb.
[[nodiscard]] Answer handle_get(const Call& call);
[[nodiscard]] Answer handle_list(const Call& call);
[[nodiscard]] Answer handle_watch(const Call& call);
[[nodiscard]] Answer handle_create(const Call& call);
[[nodiscard]] Answer handle_update(const Call& call);
[[nodiscard]] Answer handle_delete(const Call& call);
[[nodiscard]] Answer handle_patch(const Call& call);
[[nodiscard]] Answer handle_apply(const Call& call, Json wanted);
[[nodiscard]] Answer handle_eviction(const Call& call);

/// Discovery, version, health and SelfSubjectAccessReview; nothing if the path is none of them.
[[nodiscard]] std::optional<Answer> handle_discovery(const ApiSettings& settings, const k8s::Request& request,
                                                     const Target& target);

/// 400 if the body says another kind or version than the path; with `must_say`, also if it says none.
[[nodiscard]] std::optional<Answer> wrong_type(const Call& call, const Json& body, bool must_say);

/// Stores what a write made of an object: metadata that only the server may change is kept, ownership is recorded,
/// validation may refuse.
[[nodiscard]] Answer commit(const Call& call, const Json& before, Json after);

/// Causes of a 422, or a 400 message; both empty if the object is acceptable.
struct Faults422 {
  Json causes;
  std::string bad_request;
};
[[nodiscard]] Faults422 validate(const Call& call, const Json& object, const Json* before);

/// Fills in what the server decides on create or update (defaults, status, timeAdded).
void set_defaults(Store& store, Res res, Json& object, const Json* before);

/// The denial that hits `verb` on `resource`, if any.
[[nodiscard]] bool is_denied(const ApiSettings& settings, std::string_view verb, std::string_view resource);

}  // namespace dhc::sim
