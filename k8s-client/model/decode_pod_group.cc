#include "k8s-client/model/decode_pod_group.h"

#include <string>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

/// A word in 1.36, of `Pod` and `PodGroup`; since 1.37 a union of `single` and `all`, which are empty objects.
bool read_disruption_mode(JsonValue value, Fault& fault, PodGroup& group) {
  group.is_indivisible = false;
  simdjson::ondemand::json_type type{};
  if (value.type().get(type)) return fault.is("not a JSON value");
  if (type == simdjson::ondemand::json_type::string) {
    std::string word;
    if (!read_name(value, fault, word)) return false;
    group.is_indivisible = word == "PodGroup";
    return group.is_indivisible || word == "Pod" ? true : fault.is("not an object");
  }
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "all") return true;
    bool null = false;
    if (!read_null(field, fault, null)) return fault.in(key);
    group.is_indivisible = !null;
    return each_field(field, fault, [](std::string_view, JsonValue) { return true; }) || fault.in(key);
  });
}

bool read_pod_group_spec(JsonValue value, Fault& fault, PodGroup& group) {
  group.is_indivisible = false;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "disruptionMode" || read_disruption_mode(field, fault, group) || fault.in(key);
  });
}

}  // namespace

bool read_pod_group(JsonObject root, Fault& fault, const KeptFields& kept, PodGroup& group) {
  return read_root(root, fault, kept, Kind::PodGroup, group.meta, [&](std::string_view key, JsonValue value) {
    return key != "spec" || read_pod_group_spec(value, fault, group);
  });
}

}  // namespace dhc::k8s
