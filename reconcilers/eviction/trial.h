#pragma once
#include <optional>
#include <string>

#include "domain/limits/brake.h"
#include "reconcilers/shared/place_search.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// A pod that a half-open brake may try next. `node` is where its device is.
struct TrialChoice {
  BrakeTrial trial;
  std::string node;
};

/// Who is tried next: of those that nothing but the brake holds, for whom the caps have room, whose owner makes another
/// one, and for which a place is known on a node without a bad device of the scope, the one that has suffered longest.
struct NextTrial {
  std::optional<TrialChoice> choice;  ///< None: there is no such pod, or no trial is due.
  std::optional<MonoTime> wake_at;    ///< When time alone may make room for one that a cap refuses.
};
[[nodiscard]] NextTrial choose_trial(const PlanInput& input, PlaceSearch& search);

}  // namespace dhc::eviction
