#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "domain/incidents/handed_objects.h"
#include "reconcilers/hand_over/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::hand_over {

/// How many of these requests are sent in a minute.
inline constexpr std::int64_t kWritesPerMinute = 10;

using HandOverAction = std::variant<ApplyNodeConditions, MakeObject, RemoveObject>;

struct Plan : Planned<HandOverAction> {
  std::size_t handed_over = 0;  ///< Nodes that a condition of ours calls bad, or for which an object of ours was made.
  HandedObjects::Changes changes = {};  ///< What is to be remembered of objects.
  /// Devices for which a policy, by name, would hand their node over if it enforced.
  std::vector<std::pair<DeviceKey, std::string>> would = {};
};

/// Compares which nodes are to be handed over with our conditions that stand, and with the objects that were made. All
/// of them with each plan, whatever is in focus. A condition ends as healthy when nothing asks for it any more, and is
/// removed when no policy names it; an object is deleted, unless it is to be kept.
[[nodiscard]] Plan plan(const PlanInput& input);

}  // namespace dhc::hand_over
