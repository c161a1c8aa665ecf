#include <cstdint>
#include <string>
#include <utility>

#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"

// **Source:** resource/v1 generated.proto, the messages that the functions name.
namespace dhc::k8s::proto {

namespace {

// DeviceTaintSelector: an absent part selects all; empty text is kept, it is not the same.
bool read_selector(const Value& value, Fault& fault, DeviceTaintRule& rule) {
  rule.has_selector = true;
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 2:
        return read_name(field, fault, rule.driver.emplace()) || fault.in("driver");
      case 3:
        return read_name(field, fault, rule.pool.emplace()) || fault.in("pool");
      case 4:
        return read_name(field, fault, rule.device.emplace()) || fault.in("device");
      default:
        rule.has_other_selectors = true;
        return true;
    }
  });
}

// DeviceTaintRuleSpec.
bool read_rule_spec(const Value& value, Fault& fault, DeviceTaintRule& rule) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_selector(field, fault, rule) || fault.in("deviceSelector");
    if (tag == 2) return read_taint(field, fault, rule.taint) || fault.in("taint");
    return true;
  });
}

// **Source:** meta/v1 generated.proto, Condition.
bool read_progress(const Value& value, Fault& fault, std::optional<EvictionInProgress>& progress) {
  std::string type;
  EvictionInProgress read;
  std::int64_t generation = 0;
  const bool good = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, type) || fault.in("type");
      case 2:
        return read_name(field, fault, read.status) || fault.in("status");
      case 3:
        return read_number(field, fault, generation) || fault.in("observedGeneration");
      case 5:
        return read_name(field, fault, read.reason) || fault.in("reason");
      case 6:
        return read_message(field, fault, read.message) || fault.in("message");
      default:
        return true;
    }
  });
  read.observed_generation = generation;
  if (good && type == "EvictionInProgress") progress = std::move(read);
  return good;
}

// DeviceTaintRuleStatus.
bool read_rule_status(const Value& value, Fault& fault, DeviceTaintRule& rule) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_progress(field, fault, rule.progress) || fault.in("conditions");
  });
}

}  // namespace

bool read_device_taint_rule(std::string_view message, Fault& fault, const KeptFields& kept, DeviceTaintRule& rule) {
  const auto read_field = [&](std::uint32_t tag, const Value& value) {
    if (tag == 2) return read_rule_spec(value, fault, rule) || fault.in("spec");
    if (tag == 3) return read_rule_status(value, fault, rule) || fault.in("status");
    return true;
  };
  return read_root(message, fault, kept, Kind::DeviceTaintRule, rule.meta, read_field, &rule.generation);
}

}  // namespace dhc::k8s::proto
