#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/pod.h"

namespace dhc {

/// Whose loss it is when this pod is evicted: its controller's identity. A bare pod that is made anew has
/// another UID, and is the same by its node and name.
[[nodiscard]] std::string loss_owner(const k8s::Pod& pod);

/// That we evicted a pod of an owner because of a device: its replacement is not evicted for the same one.
struct OwnerLoss {
  std::string owner_uid;  ///< As `loss_owner` says.
  WallTime at;
  std::vector<std::string> holders;  ///< UIDs of the pods that held the device then: none of them is the replacement.
  friend bool operator==(const OwnerLoss&, const OwnerLoss&) = default;
};

/// How long it counts (invariant I15).
inline constexpr Millis kLossMemory = std::chrono::hours(1);

/// A loss on the clock of this process.
struct TimedLoss {
  MonoTime at;
  OwnerLoss loss;
};

/// By (`loss_owner`, device).
using OwnerLosses = std::map<std::pair<std::string, DeviceKey>, TimedLoss>;

}  // namespace dhc
