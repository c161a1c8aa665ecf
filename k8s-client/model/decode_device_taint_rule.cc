#include "k8s-client/model/decode_device_taint_rule.h"

#include <optional>
#include <string>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

// An absent part of the selector selects all and so does null; empty text is kept: it is not the same.
bool read_part(JsonValue value, Fault& fault, std::optional<std::string>& part) {
  part.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  return null || read_name(value, fault, part.emplace());
}

bool read_selector(JsonValue value, Fault& fault, DeviceTaintRule& rule) {
  rule.driver.reset();
  rule.pool.reset();
  rule.device.reset();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  rule.has_selector = !null;
  if (null) return true;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "driver") return read_part(field, fault, rule.driver) || fault.in(key);
    if (key == "pool") return read_part(field, fault, rule.pool) || fault.in(key);
    if (key == "device") return read_part(field, fault, rule.device) || fault.in(key);
    return true;
  });
}

bool read_spec(JsonValue value, Fault& fault, DeviceTaintRule& rule) {
  forget_all_but_meta(rule);
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "deviceSelector") return read_selector(field, fault, rule) || fault.in(key);
    if (key == "taint") return read_taint(field, fault, rule.taint) || fault.in(key);
    return true;
  });
}

}  // namespace

bool read_device_taint_rule(JsonObject root, Fault& fault, DeviceTaintRule& rule) {
  return read_root(root, fault, Kind::DeviceTaintRule, rule.meta, [&](std::string_view key, JsonValue value) {
    return key != "spec" || read_spec(value, fault, rule);
  });
}

}  // namespace dhc::k8s
