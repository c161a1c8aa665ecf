#pragma once
#include <span>

#include "domain/contract/cluster_status.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::status {

/// So many devices and verdicts are looked at in full; the others are counted. More never fit.
inline constexpr std::size_t kMostDevices = 1000;
inline constexpr std::size_t kMostOthers = 1000;

/// What readers are told: each device that is not healthy or has a history, the most urgent first (an open incident
/// with a holder, another device called bad that is held, an open incident, a quarantine, called bad, then the minor
/// ones: Unknown, on probation, past incidents; the newest first among their like), and the verdicts of this turn.
[[nodiscard]] ClusterStatus status_of(const PlanInput& input, std::span<const Verdict> verdicts);

}  // namespace dhc::status
