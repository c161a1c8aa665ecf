#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/findings/affected_pod.h"

namespace dhc {

/// On how many nodes devices must go bad with the same words to have one cause.
inline constexpr std::size_t kRolloutNodes = 3;

/// What one DaemonSet's roll-out has broken on several nodes, as far as it is still bad and in use.
struct RolloutDamage {
  std::size_t pods = 0;
  std::size_t nodes = 0;
  std::size_t waiting = 0;  ///< Pods for whose devices no incident is open yet.
  std::string scope;        ///< The driver or resource.
  std::string said;         ///< The driver's words, of one of them.
  Rollout rollout;          ///< Of the node where it broke something last.
  WallTime since;           ///< When the first pod of its revision was made that is still there.
};

/// By `AffectedPod::rollout_cause`: with the same words on at least `kRolloutNodes`.
using Rollouts = std::map<std::uint64_t, RolloutDamage>;

/// What the affected pods have in common, if their devices broke while a pod of one DaemonSet began anew on each node.
[[nodiscard]] Rollouts find_rollouts(const std::vector<AffectedPod>& affected_pods, const World& world, const Now& now);

/// The cause that it would be: the DaemonSet, the driver or resource, and its words without their figures, which tell
/// devices and times apart. 0: the device broke before the roll-out, or by another's.
[[nodiscard]] std::uint64_t rollout_cause(const std::optional<Rollout>& rollout, std::string_view scope,
                                          std::string_view said, WallTime since);

/// The damage for people.
[[nodiscard]] std::string words_of(const RolloutDamage& damage);

}  // namespace dhc
