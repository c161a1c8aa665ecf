#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/limits/cap_book.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// How long a gang may be half evicted before an Event says so.
inline constexpr Millis kHalfGangPatience = std::chrono::minutes(10);

/// Gangs of which some pods have gone: the charges of those that are to follow, by the gang's key. Read from what is
/// written down before the first of them goes, so that the leader after this one goes on with the same pods: what came
/// to the gang since is none of them.
using HalfGangs = std::map<std::string, std::vector<const EvictionCharge*>>;
[[nodiscard]] HalfGangs half_gangs(const PlanInput& input);

/// Why the gang does not go now, or never: it is too large, half gone, begun with another pod, or not covered.
[[nodiscard]] std::optional<HoldReason> held_by_gang(const GangUnit& unit, const HalfGangs& half,
                                                     const PlanInput& input);

/// That a PodDisruptionBudget allows fewer pods than go of it. A dry run of each eviction would not show that: none of
/// them counts. **Source:** policy/v1; kubernetes pkg/registry/core/pod/storage eviction.go.
[[nodiscard]] std::optional<HoldReason> held_by_budgets(const GangUnit& unit, const World& world);

/// That one of them is of a PodGroup which is disrupted only as a whole, and others of it would stay: the Eviction API
/// does not ask. **Source:** scheduling.k8s.io PodGroup, disruptionMode; kubernetes 1.37.1
/// pkg/registry/core/pod/storage eviction.go.
[[nodiscard]] std::optional<HoldReason> splits_pod_group(const Unit& unit, const GangUnit* gang, const World& world);

/// What holds a member by itself, of whom nothing but that it is in the gang is bad.
[[nodiscard]] std::optional<HoldReason> holds_member(const AffectedPod& member, const PlanInput& input);

}  // namespace dhc::eviction
