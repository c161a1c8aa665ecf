#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "base/wake_queue.h"
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

/// What owners lost to devices within the hour: found by both, by the device, and by when it counts no more.
class OwnerLosses {
 public:
  using Key = std::pair<std::string, DeviceKey>;  ///< `loss_owner`, and the device.

  /// Puts it in the place of what is known of the same owner and device.
  void set(const DeviceKey& device, TimedLoss timed);
  [[nodiscard]] const TimedLoss* find(const std::string& owner, const DeviceKey& device) const;
  [[nodiscard]] const std::map<Key, TimedLoss>& all() const { return all_; }
  /// Those to this device, by owner.
  [[nodiscard]] std::vector<const TimedLoss*> of(const DeviceKey& device) const;
  /// Those of this owner to the device, and to the others as which a device plugin offers its card.
  [[nodiscard]] std::vector<const TimedLoss*> to_card(const std::string& owner, const DeviceKey& device) const;
  [[nodiscard]] bool has_any_of(const DeviceKey& device) const { return owners_.contains(device); }

  /// Those that are an hour old; says to which devices they were.
  [[nodiscard]] std::vector<DeviceKey> forget(MonoTime now);

 private:
  std::map<Key, TimedLoss> all_;
  std::map<DeviceKey, std::set<std::string>> owners_;
  WakeQueue<Key> over_;
};

}  // namespace dhc
