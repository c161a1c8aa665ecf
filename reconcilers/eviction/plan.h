#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "domain/scene.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// What is evicted now, and what is said of the others.
struct Plan : Planned<EvictPod> {
  /// Waiting pods for which a place is free, by UID; none: nobody has looked for one.
  std::optional<std::set<std::string>> offered;
  std::vector<EvictionCharge> charges;  ///< Written down against the caps first.
};

/// Decides which pods are evicted now, and says of every other exposed pod why not. Same scene, same plan, whatever the
/// order of events.
[[nodiscard]] Plan plan(const Scene& scene);

}  // namespace dhc::eviction
