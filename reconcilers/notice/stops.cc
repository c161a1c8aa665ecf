#include "reconcilers/notice/stops.h"

#include "domain/findings/pauses.h"

namespace dhc::notice {

std::optional<Stop> stop_of(const AffectedPod& affected, const PlanInput& input) {
  const auto& pod = affected.pod();
  if (const auto pause = pause_for(input.world, input.policy, input.now.wall, pod, affected.key))
    return Stop{.reason = Reason::Paused, .words = pause->why, .until = end_of(*pause, input.now)};
  if (input.brake.holding(affected.key, pod.node_name, pod.meta.uid) == nullptr) return std::nullopt;
  return Stop{.reason = Reason::Braked, .words = std::string(kBraked), .until = {}};
}

}  // namespace dhc::notice
