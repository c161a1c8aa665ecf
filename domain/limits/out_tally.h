#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/now.h"
#include "domain/cluster/world.h"
#include "domain/limits/cap_count.h"
#include "domain/policy/policy.h"

namespace dhc {

/// A device that is out of service on our account.
struct OutOfService {
  std::string node;
  WallTime at;              ///< When we took it out.
  bool evicted = false;     ///< By evicting a pod from it; else by our taint alone.
  bool whole_node = false;  ///< Our taint stands on its node for it.
  friend bool operator==(const OutOfService&, const OutOfService&) = default;
};

/// By device.
using OutOfServiceBook = std::map<DeviceKey, OutOfService>;

/// How the devices that are out of service on our account count against the caps: kept from turn to turn, so that a
/// turn costs what has changed. Part of the CapBook.
class OutTally {
 public:
  /// Counts these devices anew, and those on nodes whose caps an operator has released since; all where `keys` is null
  /// or the cluster's caps have been released.
  void update(const OutOfServiceBook& out, const std::set<DeviceKey>* keys, const World& world, const Policy& policy,
              const Now& now);

  [[nodiscard]] const CapCounts& counts() const { return counts_; }

 private:
  /// As it stands in the counts.
  struct Entry {
    std::string node;
    DeviceKey card;
    CapCount::Against against;
    bool whole_node = false;
  };
  void count_anew(const DeviceKey& key, const OutOfServiceBook& out, const World& world);
  void take_out(const DeviceKey& key);

  CapCounts counts_;
  std::map<DeviceKey, Entry> entries_;
  std::map<std::string, std::set<DeviceKey>> on_node_;  // of entries_
  std::optional<WallTime> released_;                    // the cluster's caps, until then
  std::map<std::string, WallTime> node_releases_;       // and those of nodes with an annotation
};

/// The time of an annotation by which an operator releases caps; a time ahead of the clock releases nothing.
[[nodiscard]] std::optional<WallTime> cap_release(const std::string& value, const Now& now);

/// Until when the caps of one node are released.
[[nodiscard]] std::optional<WallTime> cap_release_of_node(const World& world, const std::string& node, const Now& now);

}  // namespace dhc
