#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/hand_over/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::hand_over {

/// How many of these requests are sent in a minute.
inline constexpr std::int64_t kWritesPerMinute = 10;

struct Plan : Planned<ApplyNodeConditions> {
  std::size_t handed_over = 0;  ///< Nodes of which a condition of ours says that they are bad.
  /// Devices for which a policy, by name, would hand their node over if it enforced.
  std::vector<std::pair<DeviceKey, std::string>> would = {};
};

/// Compares which nodes are to be handed over with our conditions that stand. All of them with each plan, whatever is
/// in focus. A condition ends as healthy when nothing asks for it any more, and is removed when no policy names it.
[[nodiscard]] Plan plan(const PlanInput& input);

}  // namespace dhc::hand_over
