#include "k8s-client/model/proto_meta.h"

#include <utility>

#include "k8s-client/model/quantity.h"

namespace dhc::k8s::proto {

namespace {

/// Room that most objects need.
constexpr std::size_t kUsualLabels = 8;

using TextEntries = std::vector<MapEntry<std::string_view>>;

template <class Keep>
bool read_text_entry(const Value& value, Fault& fault, TextEntries& entries, Keep keep) {
  std::string_view key;
  Value held;
  std::string_view text;
  if (!read_map_entry(value, fault, key, held) || !read_view(held, fault, text)) return false;
  if (keep(key)) entries.emplace_back(key, entries.size(), text);
  return true;
}

// **Source:** meta/v1 generated.proto, OwnerReference.
bool read_owner(const Value& value, Fault& fault, Meta& meta) {
  OwnerRef owner;
  bool is_controller = false;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, owner.kind) || fault.in("kind");
      case 3:
        return read_name(field, fault, owner.name) || fault.in("name");
      case 4:
        return read_name(field, fault, owner.uid) || fault.in("uid");
      case 5:
        return read_name(field, fault, owner.api_version) || fault.in("apiVersion");
      case 6:
        return read_bool(field, fault, is_controller) || fault.in("controller");
      default:
        return true;
    }
  });
  if (!read) return false;
  note_owner(std::move(owner), is_controller, meta);
  return true;
}

bool read_generation(const Value& value, Fault& fault, std::int64_t* generation) {
  std::int64_t number = 0;
  if (!read_number(value, fault, number)) return false;
  if (generation != nullptr) *generation = number;
  return true;
}

bool read_condition_message(const Value& value, Fault& fault, std::string& message) {
  if (!read_text(value, fault, message)) return false;
  cut_condition_message(message);
  return true;
}

}  // namespace

bool read_meta(std::string_view message, Fault& fault, const KeptFields& kept, Meta& meta, std::int64_t* generation) {
  meta = {};
  if (generation != nullptr) *generation = 0;
  TextEntries labels;
  labels.reserve(kUsualLabels);
  TextEntries annotations;
  const auto is_any = [](std::string_view) { return true; };
  const auto is_kept = [&](std::string_view key) { return is_own_annotation(key) || kept.contains(key); };
  const bool read = each_field(message, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, meta.name) || fault.in("name");
      case 3:
        return read_name(field, fault, meta.ns) || fault.in("namespace");
      case 5:
        return read_name(field, fault, meta.uid) || fault.in("uid");
      case 6:
        return read_name(field, fault, meta.resource_version) || fault.in("resourceVersion");
      case 7:
        return read_generation(field, fault, generation) || fault.in("generation");
      case 8:
        return read_time(field, fault, meta.creation) || fault.in("creationTimestamp");
      case 9:
        return read_time(field, fault, meta.deletion) || fault.in("deletionTimestamp");
      case 10:
        return read_integer(field, fault, meta.deletion_grace_seconds) || fault.in("deletionGracePeriodSeconds");
      case 11:
        return read_text_entry(field, fault, labels, is_any) || fault.in("labels");
      case 12:
        meta.has_annotations = true;
        return read_text_entry(field, fault, annotations, is_kept) || fault.in("annotations");
      case 13:
        return read_owner(field, fault, meta) || fault.in("ownerReferences");
      default:
        return true;
    }
  });
  meta.labels = to_map(labels);
  meta.annotations = to_map(annotations);
  return read;
}

bool read_condition(const Value& value, Fault& fault, Condition& condition) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, condition.type) || fault.in("type");
      case 2:
        return read_name(field, fault, condition.status) || fault.in("status");
      case 4:
        return read_time(field, fault, condition.last_transition) || fault.in("lastTransitionTime");
      case 5:
        return read_name(field, fault, condition.reason) || fault.in("reason");
      case 6:
        return read_condition_message(field, fault, condition.message) || fault.in("message");
      default:
        return true;
    }
  });
}

bool read_taint(const Value& value, Fault& fault, Taint& taint) {
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, taint.key) || fault.in("key");
      case 2:
        return read_name(field, fault, taint.value) || fault.in("value");
      case 3:
        return read_name(field, fault, taint.effect) || fault.in("effect");
      case 4:
        return read_time(field, fault, taint.time_added) || fault.in("timeAdded");
      default:
        return true;
    }
  });
  settle_effect(taint);
  return read;
}

bool Amounts::read_entry(const Value& value, Fault& fault) {
  std::string_view key;
  Value quantity;
  if (!read_map_entry(value, fault, key, quantity)) return false;
  if (!is_extended_resource(key)) return true;
  if (!is_clean_name(key)) return fault.is("a resource name with a control character or too long");
  // A Quantity without its text is the number zero, as in Go.
  std::string_view text = "0";
  const bool read = each_field(quantity, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_view(field, fault, text);
  });
  if (!read) return false;
  const auto amount = parse_whole_quantity(text);
  if (!amount) return fault.is("not a whole quantity");
  entries_.emplace_back(key, entries_.size(), *amount);
  return true;
}

}  // namespace dhc::k8s::proto
