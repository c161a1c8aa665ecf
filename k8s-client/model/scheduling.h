#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "k8s-client/model/node.h"
#include "k8s-client/model/shared.h"

namespace dhc::k8s {

/// One requirement on a node's labels, or on its name. **Source:** core/v1 NodeSelectorRequirement.
struct NodeRequirement {
  enum class Operator : std::uint8_t { In, NotIn, Exists, DoesNotExist, Gt, Lt, Unknown };
  std::string key;  ///< A label, or with `is_field` a field.
  Operator op = Operator::Unknown;
  std::vector<std::string> values;
  bool is_field = false;
  friend auto operator<=>(const NodeRequirement&, const NodeRequirement&) = default;
};

/// Requirements that must all be met; without any no node is selected. **Source:** core/v1 NodeSelectorTerm.
using NodeTerm = std::vector<NodeRequirement>;

/// A taint that a pod accepts, on its node or (in a claim) on its device. For how long is not read: when that has
/// passed Kubernetes itself evicts. **Source:** core/v1 Toleration; resource.k8s.io/v1 DeviceToleration.
struct Toleration {
  std::string key;  ///< Empty with `exists`: every key.
  std::string value;
  std::string effect;   ///< Empty: every effect.
  bool exists = false;  ///< Whatever the value.
  friend auto operator<=>(const Toleration&, const Toleration&) = default;
};

/// Which nodes a pod accepts, and what of it is not read. Most pods have none of it.
struct SchedulingTerms {
  StringMap node_selector;
  bool has_node_terms = false;
  std::vector<NodeTerm> node_terms;  ///< `requiredDuringSchedulingIgnoredDuringExecution`: one must be met.
  std::vector<Toleration> tolerations;
  bool gated = false;            ///< `schedulingGates`: the scheduler does not look at it yet.
  bool has_other_terms = false;  ///< Pod affinity or topology spread.
  friend auto operator<=>(const SchedulingTerms&, const SchedulingTerms&) = default;
};

/// True if the pod's node selector and required node affinity accept the node.
[[nodiscard]] bool selects_node(const SchedulingTerms& terms, const Node& node);

/// True if one of them tolerates the taint. **Source:** core/v1 Toleration.ToleratesTaint;
/// k8s.io/dynamic-resource-allocation/resourceclaim ToleratesTaint.
[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

/// Whether new pods that do not tolerate the taint are kept off. **Source:** core/v1 TaintEffect; resource.k8s.io
/// DeviceTaintEffect.
[[nodiscard]] bool keeps_pods_off(const Taint& taint);

/// True if the pod tolerates every NoSchedule and NoExecute taint of the node. **Source:** core/v1
/// Toleration.ToleratesTaint.
[[nodiscard]] bool tolerates_taints(const SchedulingTerms& terms, const Node& node);

}  // namespace dhc::k8s
