#pragma once
#include <span>
#include <string>
#include <vector>

#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/meta.h"

namespace dhc::k8s {

/// The part of Node that we read.
struct Node {
  Meta meta;
  bool ready = false;  ///< Condition Ready is True; anything else, or none, is not ready.
  /// Condition that is True and says that the node is being drained or shut down, or that maintenance is planned or
  /// under way; empty: none. **Source:** kubernetes.io, "Node lifecycle conditions" (KEP-5683, alpha in 1.37).
  std::string lifecycle = {};
  std::vector<Condition> kept = {};  ///< Conditions with one of `KeptFields::node_reasons`, by type; at most 16.
  bool unschedulable = false;
  SharedText boot_id;
  SharedText kubelet_version = {};  ///< As the kubelet says it; empty: it does not.
  std::vector<Taint> taints;
  std::vector<ResourceAmount> capacity;     ///< Extended resources, sorted by name.
  std::vector<ResourceAmount> allocatable;  ///< Extended resources, sorted by name.
  friend bool operator==(const Node&, const Node&) = default;
};

/// Takes in one condition of the node's status; of several that say that it leaves, the most pressing is kept.
void note_condition(Node& node, const Condition& condition, const KeptFields& kept);

/// The amount of `resource`, 0 if it is not listed.
[[nodiscard]] std::int64_t amount_of(std::span<const ResourceAmount> amounts, std::string_view resource);

}  // namespace dhc::k8s
