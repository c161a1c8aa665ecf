#pragma once
#include <optional>
#include <string>

#include "domain/limits/brake.h"
#include "reconcilers/shared/place_search.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// The pod that a half-open brake may try next: the one that has suffered longest of those that nothing but the
/// brake holds, whose owner makes another one, and for which a place is known on a node without a bad device of the
/// scope. None: there is no such pod, or no trial is due. `node` is where its device is.
struct TrialChoice {
  BrakeTrial trial;
  std::string node;
};
[[nodiscard]] std::optional<TrialChoice> choose_trial(const PlanInput& input, PlaceSearch& search);

}  // namespace dhc::eviction
