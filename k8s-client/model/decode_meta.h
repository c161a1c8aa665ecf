#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// Reads the metadata, and the generation for the kinds that look at it.
bool read_meta(JsonValue value, Fault& fault, const KeptFields& kept, Meta& meta, std::int64_t* generation = nullptr);

/// False, with the fault set, unless the object has the identity that its kind needs.
bool require_identity(const Meta& meta, Kind kind, Fault& fault);

/// False, with the fault set, if an object that names its kind is of another kind.
bool read_kind(JsonValue value, Fault& fault, Kind kind);

/// One condition, of a pod, a node or a claim's device.
bool read_condition(JsonValue value, Fault& fault, Condition& condition);

/// One taint; an effect that we do not know becomes None. **Source:** KEP-5055.
bool read_taint(JsonValue value, Fault& fault, Taint& taint);

/// The attributes of a published device whose value is text, sorted by name. **Source:** KEP-4381: the others are
/// versions, numbers and truth values.
bool read_attributes(JsonValue value, Fault& fault, StringMap& attributes);

/// The extended resources of a resource list, sorted by name.
bool read_amounts(JsonValue value, Fault& fault, std::vector<ResourceAmount>& amounts);

/// What earlier fields left in the record is dropped: of duplicate keys the last counts.
template <class Record>
void forget_all_but_meta(Record& record) {
  Record fresh;
  fresh.meta = std::move(record.meta);
  record = std::move(fresh);
}

/// Reads a whole object: its kind is checked, metadata goes to `meta`, `on_field(key, value)` gets the other fields and
/// names the field of its own faults.
template <class OnField>
bool read_root(JsonObject root, Fault& fault, const KeptFields& kept, Kind kind, Meta& meta, OnField&& on_field,
               std::int64_t* generation = nullptr) {
  const bool read = each_field(root, fault, [&](std::string_view key, JsonValue value) {
    if (key == "kind") return read_kind(value, fault, kind) || fault.in(key);
    if (key == "metadata") return read_meta(value, fault, kept, meta, generation) || fault.in(key);
    return on_field(key, value) || fault.in(key);
  });
  return read && require_identity(meta, kind, fault);
}

/// An object of which only the metadata is read.
inline bool read_meta_only(JsonObject root, Fault& fault, const KeptFields& kept, Kind kind, Meta& meta) {
  return read_root(root, fault, kept, kind, meta, [](std::string_view, const JsonValue&) { return true; });
}

}  // namespace dhc::k8s
