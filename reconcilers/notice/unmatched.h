#pragma once
#include <cstddef>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// How many NoPolicy verdicts there are at most, beside the one with the number of the rest.
inline constexpr std::size_t kMostUnmatched = 500;

/// A verdict for each pod that holds a device which is Unhealthy, or which its driver has tainted, and which no policy
/// matches, with the nearest policy and the part of its match that failed. A policy with mode off matches.
[[nodiscard]] std::vector<Verdict> find_unmatched(const PlanInput& input);

}  // namespace dhc::notice
