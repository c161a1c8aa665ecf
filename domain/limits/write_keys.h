#pragma once
#include <string>
#include <string_view>

namespace dhc {

/// The request tracker's keys of writes that are no eviction, condition or Event.
inline constexpr std::string_view kRuleKeyPrefix = "rule/";
inline constexpr std::string_view kStateKey = "state";
inline constexpr std::string_view kStatusKey = "status";

/// Of writes to one DeviceTaintRule.
[[nodiscard]] inline std::string rule_write_key(std::string_view rule) {
  return std::string(kRuleKeyPrefix).append(rule);
}

/// Of writes to one node's taints.
[[nodiscard]] inline std::string node_write_key(std::string_view node) { return std::string("node/").append(node); }

/// Of writes to one node's conditions.
[[nodiscard]] inline std::string hand_over_write_key(std::string_view node) {
  return std::string("hand-over/").append(node);
}

/// Of writes to one object of another's kind by which a node is handed over.
[[nodiscard]] inline std::string handed_object_key(std::string_view slot) {
  return std::string("handed/").append(slot);
}

/// Of writes to one Job.
[[nodiscard]] inline std::string job_write_key(std::string_view job_uid) { return std::string("job/").append(job_uid); }

/// Of the creation of the Job that replaces one.
[[nodiscard]] inline std::string job_recreation_key(std::string_view job_uid) {
  return std::string("recreation/").append(job_uid);
}

}  // namespace dhc
