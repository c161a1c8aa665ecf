#pragma once
#include <optional>
#include <set>
#include <string>

#include "domain/brake.h"
#include "domain/scene.h"

namespace dhc::eviction {

/// The pod that a half-open brake may let go next: the one that has suffered longest of those that nothing but the
/// brake holds, whose owner makes another one, and for which a place is known on a node without a bad device of the
/// scope. `node` is where its device is.
struct TrialChoice {
  BrakeTrial trial;
  std::string node;
};

struct TrialSearch {
  std::optional<TrialChoice> choice;             ///< None: there is no such pod, or no trial is due.
  std::optional<std::set<std::string>> offered;  ///< As `Places::offered`; none: nobody has looked.
};
[[nodiscard]] TrialSearch choose_trial(const Scene& scene);

}  // namespace dhc::eviction
