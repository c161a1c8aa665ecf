#pragma once
#include "domain/scene.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// Decides which pods are evicted now, and says of every other exposed pod why not. Same scene, same plan, whatever the
/// order of events.
[[nodiscard]] Planned<EvictPod> plan(const Scene& scene);

}  // namespace dhc::eviction
