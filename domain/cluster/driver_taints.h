#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/inventory.h"
#include "domain/policy/policy.h"

namespace dhc {

/// A taint of a device as its driver publishes it. A later `timeAdded` on one that has stood all the time says nothing
/// (see `k8s::Taint`).
struct SliceTaint {
  k8s::Taint taint;
  Moment since;                        ///< First seen.
  bool from_the_start = true;          ///< It stood in the pool's first slices that we saw: it may be older than we.
  std::optional<MonoTime> until = {};  ///< When others of the device followed it; none: it stands.
};

/// What a policy makes of a device's taints.
struct TaintWord {
  Moment since;                   ///< Since when a taint that it names has been seen, one following the other.
  bool from_the_start = true;     ///< The first of them may be older than we.
  std::optional<WallTime> added;  ///< The first time that those give which stand.
  /// Since when nobody publishes the device, or another taint of the key stands that is not named: the driver has
  /// written over its word, and not taken it back.
  std::optional<MonoTime> unknown_from;
  k8s::Taint taint;          ///< The first of those that stand, or stood.
  std::string said;          ///< `key=value:effect` of those that stand, or stood.
  bool overwritten = false;  ///< None that is named stands: another taint of the key was written over it.
};

/// The taints that DRA drivers put on their own devices, followed over time: never those of DeviceTaintRules, so that
/// nothing that we write can be taken for a signal. While nobody publishes a device its taints stand as they were last
/// seen: a driver that restarts takes its slices away, and has said nothing by that.
class DriverTaints {
 public:
  /// Takes in what the pool's slices show now. Safe to repeat.
  void look_at(const Inventory& inventory, const std::string& driver, const std::string& pool, const Now& now);
  /// What was seen of the pool was not its own.
  void begin_anew(const std::string& driver, const std::string& pool);
  /// What was seen of the device was another's, which sat in its place.
  void begin_anew(const DeviceKey& key) { tainted_.erase(key); }
  /// Forgets what nobody has published for so long that it says nothing about now, but for devices that are held.
  void forget(const Now& now, const std::function<bool(const DeviceKey&)>& is_held);
  /// Forgets the devices of pools that the inventory has forgotten.
  void forget_but(const Inventory& inventory);

  /// Devices with a taint, sorted.
  [[nodiscard]] std::vector<DeviceKey> devices() const;
  [[nodiscard]] bool is_tainted(const DeviceKey& key) const { return tainted_.contains(key); }
  /// Those that stand on the device, or stood when it was last published.
  [[nodiscard]] std::vector<k8s::Taint> standing(const DeviceKey& key) const;
  /// None: nothing that is named stands on the device. Another taint that was written over it takes nothing back, for
  /// as long as Unknown does; where an incident by a taint of `open_key` is open, for as long as that is.
  [[nodiscard]] std::optional<TaintWord> word_for(const DeviceKey& key, const std::vector<DeviceTaintMatch>& wanted,
                                                  MonoTime now, std::string_view open_key = {}) const;
  /// Devices of which something that was written over may say nothing any more since this was last asked.
  [[nodiscard]] std::vector<DeviceKey> lapsed(const Now& now);
  [[nodiscard]] std::optional<MonoTime> next_lapse() const;
  /// Whether the driver has tainted a device since this process began.
  [[nodiscard]] bool has_spoken(const std::string& driver) const { return speakers_.contains(driver); }
  /// How many drivers have ever tainted a device.
  [[nodiscard]] std::size_t spoken() const { return speakers_.size(); }

 private:
  struct Device {
    std::vector<SliceTaint> taints;
    std::optional<MonoTime> hidden_at;
  };
  using PoolName = std::pair<std::string, std::string>;
  void look_at(const PoolName& name, const Pool& pool, const Now& now);
  void follow(const DeviceKey& key, const PublishedDevice& published, bool is_first, const Now& now);

  std::map<DeviceKey, Device> tainted_;
  std::map<DeviceKey, MonoTime> lapses_;  // the next of each, or before it
  std::set<PoolName> seen_;               // that have been published since this process began
  std::set<std::string> speakers_;        // drivers
};

}  // namespace dhc
