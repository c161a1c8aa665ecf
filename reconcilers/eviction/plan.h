#pragma once
#include <set>
#include <string>
#include <vector>

#include "reconcilers/eviction/action.h"
#include "reconcilers/eviction/gates.h"
#include "reconcilers/shared/place_search.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What is evicted now, and what is said of the others.
struct Plan : Planned<EvictPod> {
  std::vector<EvictionCharge> charges;  ///< Written down against the caps first.
  /// UIDs of pods whose eviction is on its way and would not be ordered now: what is not begun must not be.
  std::set<std::string> revoked;
  /// UIDs of pods of which an owner's word is waited for, whatever is said of them: a gang waits for each of its own.
  std::set<std::string> asks_owners;
  std::map<DeviceKey, Rests> rests;  ///< Of the devices in focus: of several pods what all rest on together.
  CommonAnswers before;              ///< To whoever was asked first,
  CommonAnswers after;               ///< and to whoever was asked last.
  bool took = false;                 ///< Somebody has taken a share in between.
};

/// Decides which pods are evicted now, and says of every other affected pod why not. Same plan input, same plan,
/// whatever the order of events.
/// `questions` are those on whose answers the pods rest that are not in focus.
[[nodiscard]] Plan plan(const PlanInput& input, PlaceSearch& search, const CommonQuestions& questions = {});

}  // namespace dhc::eviction
