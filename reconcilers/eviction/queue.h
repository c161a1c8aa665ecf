#pragma once
#include <vector>

#include "reconcilers/shared/scene.h"

namespace dhc::eviction {

/// The exposures in the order in which they are considered. What has not been tried comes first: one of each namespace
/// in turn, so that no tenant's many stand before another's one, and the longest suffering of a namespace first. Then
/// what was tried, the longest ago first: what keeps failing never stands before what may succeed.
[[nodiscard]] std::vector<const Exposure*> fair_order(const Scene& scene);

}  // namespace dhc::eviction
