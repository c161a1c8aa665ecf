#pragma once
#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "k8s-client/model/object.h"

namespace dhc::test {

/// Since when an object's taints stand, which its `==` leaves out.
[[nodiscard]] inline std::vector<std::optional<WallTime>> taint_times(const k8s::Object& object) {
  std::vector<std::optional<WallTime>> times;
  const auto add = [&](const k8s::Taint& taint) { times.push_back(taint.time_added); };
  if (const auto* node = std::get_if<k8s::Node>(&object)) std::ranges::for_each(node->taints, add);
  if (const auto* rule = std::get_if<k8s::DeviceTaintRule>(&object)) add(rule->taint);
  if (const auto* slice = std::get_if<k8s::ResourceSlice>(&object)) {
    for (const auto& device : slice->devices) std::ranges::for_each(device.taints, add);
  }
  return times;
}

/// Whether two decoders made the same of an object, in every member.
[[nodiscard]] inline bool same_record(const k8s::Object& a, const k8s::Object& b) {
  return a == b && taint_times(a) == taint_times(b);
}

[[nodiscard]] inline bool same_records(const std::vector<k8s::Object>& a, const std::vector<k8s::Object>& b) {
  return std::ranges::equal(a, b, same_record);
}

}  // namespace dhc::test
