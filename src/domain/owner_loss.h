#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/device_key.h"
#include "domain/moment.h"

namespace dhc {

/// That we evicted a pod of an owner because of a device: its replacement is not evicted for the same one.
struct OwnerLoss {
  std::string owner_uid;
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

/// By (owner UID, device).
using OwnerLosses = std::map<std::pair<std::string, DeviceKey>, TimedLoss>;

}  // namespace dhc
