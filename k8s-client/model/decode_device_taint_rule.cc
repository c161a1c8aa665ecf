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
  rule.has_other_selectors = false;
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  rule.has_selector = !null;
  if (null) return true;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "driver") return read_part(field, fault, rule.driver) || fault.in(key);
    if (key == "pool") return read_part(field, fault, rule.pool) || fault.in(key);
    if (key == "device") return read_part(field, fault, rule.device) || fault.in(key);
    bool absent = false;
    if (!read_null(field, fault, absent)) return fault.in(key);
    if (!absent) rule.has_other_selectors = true;
    return true;
  });
}

bool read_spec(JsonValue value, Fault& fault, DeviceTaintRule& rule) {
  rule.has_selector = false;
  rule.driver.reset();
  rule.pool.reset();
  rule.device.reset();
  rule.has_other_selectors = false;
  rule.taint = {};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "deviceSelector") return read_selector(field, fault, rule) || fault.in(key);
    if (key == "taint") return read_taint(field, fault, rule.taint) || fault.in(key);
    return true;
  });
}

bool read_progress(JsonValue value, Fault& fault, std::optional<EvictionInProgress>& progress) {
  std::string type;
  EvictionInProgress read;
  const bool good = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "type") return read_name(field, fault, type) || fault.in(key);
    if (key == "status") return read_name(field, fault, read.status) || fault.in(key);
    if (key == "reason") return read_name(field, fault, read.reason) || fault.in(key);
    if (key == "message") return read_message(field, fault, read.message) || fault.in(key);
    if (key != "observedGeneration") return true;
    std::optional<std::int64_t> generation;
    if (!read_integer(field, fault, generation)) return fault.in(key);
    read.observed_generation = generation.value_or(0);
    return true;
  });
  if (good && type == "EvictionInProgress") progress = std::move(read);
  return good;
}

bool read_status(JsonValue value, Fault& fault, DeviceTaintRule& rule) {
  rule.progress.reset();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "conditions") return true;
    rule.progress.reset();
    const auto read = [&](JsonValue item) { return read_progress(item, fault, rule.progress); };
    return each_item(field, fault, read) || fault.in(key);
  });
}

}  // namespace

bool read_device_taint_rule(JsonObject root, Fault& fault, const KeptFields& kept, DeviceTaintRule& rule) {
  const auto read_field = [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, rule);
    if (key == "status") return read_status(value, fault, rule);
    return true;
  };
  return read_root(root, fault, kept, Kind::DeviceTaintRule, rule.meta, read_field, &rule.generation);
}

}  // namespace dhc::k8s
