#pragma once
#include <string>
#include <vector>

#include "k8s-client/model/meta.h"

namespace dhc::k8s {

/// The part of Node that we read.
struct Node {
  Meta meta;
  bool ready = false;  ///< Condition Ready is True; anything else, or none, is not ready.
  bool unschedulable = false;
  std::string boot_id;
  std::vector<Taint> taints;
  std::vector<ResourceAmount> capacity;     ///< Extended resources, sorted by name.
  std::vector<ResourceAmount> allocatable;  ///< Extended resources, sorted by name.
  friend bool operator==(const Node&, const Node&) = default;
};

/// The amount of `resource`, 0 if it is not listed.
[[nodiscard]] std::int64_t amount_of(const std::vector<ResourceAmount>& amounts, std::string_view resource);

}  // namespace dhc::k8s
