#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// What keeps a pod from its eviction until somebody ends it, and may stand for days: a pause, or a brake.
struct Stop {
  Reason reason = Reason::Paused;
  std::string words;              ///< The same for as long as it stands.
  std::optional<MonoTime> until;  ///< Of a pause with an end.
};

/// The verdict on a brake counts devices: a condition that repeated it would be written with each of them.
inline constexpr std::string_view kBraked = "the brake stops new evictions here until it is released";

/// Of the pod's own node and device, whatever else holds the pod just now; none: neither does.
[[nodiscard]] std::optional<Stop> stop_of(const AffectedPod& affected, const PlanInput& input);

}  // namespace dhc::notice
