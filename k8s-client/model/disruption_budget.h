#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "k8s-client/model/meta.h"
#include "k8s-client/model/pod.h"

namespace dhc::k8s {

/// One requirement of a label selector. **Source:** meta/v1 LabelSelectorRequirement.
struct LabelRequirement {
  enum class Operator : std::uint8_t { In, NotIn, Exists, DoesNotExist, Unknown };
  std::string key;
  Operator op = Operator::Unknown;
  std::vector<std::string> values;
  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

/// The part of a PodDisruptionBudget that we read. **Source:** policy/v1.
struct DisruptionBudget {
  Meta meta;
  std::int64_t generation = 0;
  std::optional<std::vector<LabelRequirement>> selector;  ///< Absent selects no pod, empty all of the namespace.
  bool always_allows_unhealthy = false;                   ///< `unhealthyPodEvictionPolicy: AlwaysAllow`.
  std::int64_t observed_generation = 0;
  std::int64_t disruptions_allowed = 0;
  std::int64_t current_healthy = 0;
  std::int64_t desired_healthy = 0;
  friend bool operator==(const DisruptionBudget&, const DisruptionBudget&) = default;
};

/// Whether the budget counts the pod, which must be of its namespace. An operator that is not known selects.
[[nodiscard]] bool selects(const DisruptionBudget& budget, const Pod& pod);

/// Whether the Eviction API asks any budget about the pod. **Source:** kubernetes pkg/registry/core/pod/storage
/// eviction.go, canIgnorePDB.
[[nodiscard]] bool asks_budgets(const Pod& pod);

/// Whether the eviction of the pod takes one of the disruptions that the budget allows: of a pod that is not Ready it
/// may take none. **Source:** the same file, KEP-3017.
[[nodiscard]] bool spends(const DisruptionBudget& budget, const Pod& pod);

}  // namespace dhc::k8s
