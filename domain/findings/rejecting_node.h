#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/world.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The pods that one node's kubelet rejected although the node said that it had what they asked for, of one
/// device-plugin resource, within the policy's `blackHole.within`.
struct RejectingNode {
  std::vector<Moment> rejections;        ///< Oldest first; never empty.
  const DevicePolicy* policy = nullptr;  ///< One that taints such a node before others; never null.

  /// When there were enough of them for new pods to go there only to die; none: there are too few.
  [[nodiscard]] std::optional<Moment> since() const;
  /// When time alone makes it another.
  [[nodiscard]] MonoTime changes_at() const;
};

/// By (node, resource).
using RejectingNodes = std::map<std::pair<std::string, std::string>, RejectingNode>;

/// Every node whose kubelet has rejected pods lately. Points into `policy`: valid for one turn.
[[nodiscard]] RejectingNodes find_rejecting_nodes(const World& world, const Policy& policy, const Now& now);

/// Until when the rejections say nothing, because the resource's plugin is being replaced on the node, or was a moment
/// ago; over or not. None: they count.
[[nodiscard]] std::optional<WallTime> rolls_until(const World& world, const DeviceKey& key,
                                                  const RejectingNode& rejecting);

/// True if a pod that asks for the resource runs there and was made after `when`: the kubelet admits again.
[[nodiscard]] bool admitted_since(const World& world, const DeviceKey& key, WallTime when);

}  // namespace dhc
