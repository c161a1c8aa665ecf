#include "k8s-client/model/decode_meta.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "k8s-client/model/quantity.h"

namespace dhc::k8s {

namespace {

/// Room that most maps need.
constexpr std::size_t kUsualEntries = 8;

bool is_any_key(std::string_view) { return true; }

// `any` learns whether there is an entry at all, kept or not.
template <class Keep>
bool read_map(JsonValue value, Fault& fault, StringMap& map, bool& any, Keep keep) {
  map.clear();
  any = false;
  std::vector<MapEntry<std::string_view>> entries;
  entries.reserve(kUsualEntries);
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue text) {
    bool null = false;
    if (!any && !read_null(text, fault, null)) return false;
    any = any || !null;
    return !keep(key) || read_view(text, fault, entries.emplace_back(key, entries.size(), std::nullopt).value);
  });
  if (!read) return false;
  map = StringMap(settled(entries));
  return true;
}

bool read_owner(JsonValue value, Fault& fault, Meta& meta) {
  OwnerRef owner;
  bool is_controller = false;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "apiVersion") return read_name(field, fault, owner.api_version) || fault.in(key);
    if (key == "kind") return read_name(field, fault, owner.kind) || fault.in(key);
    if (key == "name") return read_name(field, fault, owner.name) || fault.in(key);
    if (key == "uid") return read_name(field, fault, owner.uid) || fault.in(key);
    if (key == "controller") return read_bool(field, fault, is_controller) || fault.in(key);
    return true;
  });
  if (!read) return false;
  note_owner(std::move(owner), is_controller, meta);
  return true;
}

bool read_owners(JsonValue value, Fault& fault, Meta& meta) {
  meta.controller.reset();
  meta.has_other_owner = false;
  return each_item(value, fault, [&](JsonValue item) { return read_owner(item, fault, meta); });
}

bool is_namespaced(Kind kind) {
  switch (kind) {
    case Kind::Pod:
    case Kind::ResourceClaim:
    case Kind::Job:
    case Kind::ReplicaSet:
    case Kind::StatefulSet:
    case Kind::PodDisruptionBudget:
    case Kind::PodGroup:
    case Kind::ConfigMap:
    case Kind::Lease:
      return true;
    case Kind::ResourceSlice:
    case Kind::Node:
    case Kind::Namespace:
    case Kind::DeviceTaintRule:
      return false;
  }
  return false;
}

bool is_metadata_only(Kind kind) { return kind == Kind::ReplicaSet || kind == Kind::StatefulSet; }

// A quantity as the server writes it (text), or as a person may have written it (a number). One that we cannot count
// makes the object bad: a guess about how many devices there are is worse than an old record.
bool read_amount(JsonValue value, Fault& fault, std::optional<std::int64_t>& amount) {
  simdjson::ondemand::json_type type{};
  if (value.type().get(type)) return fault.is("not a JSON value");
  if (type != simdjson::ondemand::json_type::string) {
    if (!read_integer(value, fault, amount)) return false;
    return amount.value_or(0) >= 0 ? true : fault.is("not a whole quantity");
  }
  std::optional<std::string_view> text;
  if (!read_view(value, fault, text)) return false;
  amount = parse_whole_quantity(text.value_or(std::string_view()));
  return amount ? true : fault.is("not a whole quantity");
}

// A generation that is absent counts as 0.
bool read_generation(JsonValue value, Fault& fault, std::int64_t& generation) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  generation = number.value_or(0);
  return true;
}

}  // namespace

bool read_meta(JsonValue value, Fault& fault, const KeptFields& kept, Meta& meta, std::int64_t* generation) {
  meta = {};
  if (generation != nullptr) *generation = 0;
  bool has_labels = false;
  const auto is_kept = [&](std::string_view key) { return is_own_annotation(key) || kept.contains(key); };
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "namespace") return read_name(field, fault, meta.ns);
      if (key == "name") return read_name(field, fault, meta.name);
      if (key == "uid") return read_name(field, fault, meta.uid);
      if (key == "resourceVersion") return read_name(field, fault, meta.resource_version);
      if (key == "generation" && generation != nullptr) return read_generation(field, fault, *generation);
      if (key == "creationTimestamp") return read_time(field, fault, meta.creation);
      if (key == "deletionTimestamp") return read_time(field, fault, meta.deletion);
      if (key == "deletionGracePeriodSeconds") return read_integer(field, fault, meta.deletion_grace_seconds);
      if (key == "labels") return read_map(field, fault, meta.labels, has_labels, is_any_key);
      if (key == "annotations") return read_map(field, fault, meta.annotations, meta.has_annotations, is_kept);
      if (key == "ownerReferences") return read_owners(field, fault, meta);
      return true;
    };
    return read() || fault.in(key);
  });
}

bool require_identity(const Meta& meta, Kind kind, Fault& fault) {
  const bool complete = require(meta.name, fault, "name") && require(meta.uid, fault, "uid") &&
                        require(meta.resource_version, fault, "resourceVersion") &&
                        (!is_namespaced(kind) || require(meta.ns, fault, "namespace"));
  return complete || fault.in("metadata");
}

bool read_kind(JsonValue value, Fault& fault, Kind kind) {
  std::string name;
  if (!read_name(value, fault, name)) return false;
  const bool fits =
      name.empty() || name == to_string(kind) || (is_metadata_only(kind) && name == "PartialObjectMetadata");
  return fits || fault.is("another kind");
}

bool read_condition_message(JsonValue value, Fault& fault, std::string& message) {
  if (!read_text(value, fault, message)) return false;
  cut_condition_message(message);
  return true;
}

bool read_condition(JsonValue value, Fault& fault, Condition& condition) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "type") return read_name(field, fault, condition.type) || fault.in(key);
    if (key == "status") return read_name(field, fault, condition.status) || fault.in(key);
    if (key == "reason") return read_name(field, fault, condition.reason) || fault.in(key);
    if (key == "message") return read_condition_message(field, fault, condition.message) || fault.in(key);
    if (key == "lastTransitionTime") return read_time(field, fault, condition.last_transition) || fault.in(key);
    return true;
  });
}

bool read_taint(JsonValue value, Fault& fault, Taint& taint) {
  taint = {};
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "key") return read_name(field, fault, taint.key) || fault.in(key);
    if (key == "value") return read_name(field, fault, taint.value) || fault.in(key);
    if (key == "effect") return read_name(field, fault, taint.effect) || fault.in(key);
    if (key == "timeAdded") return read_time(field, fault, taint.time_added) || fault.in(key);
    return true;
  });
  settle_effect(taint);
  return read;
}

bool read_attributes(JsonValue value, Fault& fault, StringMap& attributes) {
  attributes.clear();
  std::vector<MapEntry<std::string_view>> entries;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue attribute) {
    auto& entry = entries.emplace_back(key, entries.size(), std::nullopt);
    return each_field(attribute, fault, [&](std::string_view type, JsonValue text) {
      return type != "string" || read_view(text, fault, entry.value);
    });
  });
  if (!read) return false;
  // Names and values go on into logs and a ConfigMap: what is no clean name is left out, not the whole slice.
  std::erase_if(entries, [](const auto& entry) {
    return !is_clean_name(entry.key) || !is_clean_name(entry.value.value_or(std::string_view()));
  });
  attributes = StringMap(settled(entries));
  return true;
}

bool read_amounts(JsonValue value, Fault& fault, std::vector<ResourceAmount>& amounts) {
  amounts.clear();
  std::vector<MapEntry<std::int64_t>> entries;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue amount) {
    if (!is_extended_resource(key)) return true;
    if (!is_clean_name(key)) return fault.is("a resource name with a control character or too long");
    return read_amount(amount, fault, entries.emplace_back(key, entries.size(), std::nullopt).value);
  });
  if (!read) return false;
  amounts = settled(entries);
  return true;
}

}  // namespace dhc::k8s
