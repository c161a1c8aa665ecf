#pragma once
#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/api/field.h"

namespace dhc::sim {

/// The place of one field as managedFields writes its steps: `f:name`, or `k:{"type":"Ready"}` in a list keyed by type.
using FieldPath = std::vector<std::string>;

/// Who wrote a field, and how.
struct Manager {
  std::string name;
  bool applied = false;  ///< By server-side apply; else by a create, update or patch.
  std::string subresource;
  friend auto operator<=>(const Manager&, const Manager&) = default;
};

/// Which manager owns which fields of one object.
using Ownership = std::map<Manager, std::set<FieldPath>>;

/// Every field of `object` that can be owned, with its value. Lists are one field, except conditions (keyed by type)
/// and finalizers.
[[nodiscard]] std::map<FieldPath, Json> owned_fields(const Json& object);

/// Sets the field at `path`, making what is missing.
void set_field(Json& object, const FieldPath& path, const Json& value);

/// Removes the field at `path`, and the list entry it was in when nothing but its key is left.
void erase_field(Json& object, const FieldPath& path);

/// `.spec.taint.effect`, as a conflict names it.
[[nodiscard]] std::string path_text(const FieldPath& path);

/// A plain write by `manager` takes over every field that it changed, from everybody.
void take_over(Ownership& owners, const Manager& manager, const Json& before, const Json& after);

/// `metadata.managedFields` of an object.
[[nodiscard]] Json managed_fields(const Ownership& owners, const std::string& api_version, const std::string& time);

}  // namespace dhc::sim
