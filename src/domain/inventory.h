#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "domain/device_key.h"
#include "domain/moment.h"
#include "k8s-client/model/object.h"

namespace dhc {

/// The devices of one pool, from the slices of its highest generation.
struct Pool {
  std::string node;       ///< Empty for network-attached devices.
  bool published = true;  ///< False: the slices are gone, the devices are remembered (a driver's restart removes them:
                          ///< seen on 1.37.1).
  std::map<std::string, std::vector<k8s::Taint>> devices;
};

/// What DRA drivers publish, and the taint rules over it. Changed only by slices and rules.
class Inventory {
 public:
  void upsert(k8s::ResourceSlice slice);
  void remove_slice(std::string_view uid);
  void replace_slices(std::vector<k8s::ResourceSlice> slices);
  void upsert(k8s::DeviceTaintRule rule);
  void remove_rule(std::string_view uid);
  void replace_rules(std::vector<k8s::DeviceTaintRule> rules);
  /// Drops remembered pools of nodes that are gone.
  void forget_nodes_but(const std::map<std::string, k8s::Node>& nodes);

  /// Which taint keeps the scheduler off the device (NoSchedule or NoExecute), in words; none: it may hand the device
  /// out.
  /// **Source:** KEP-5055; only slices of the pool's highest generation count.
  [[nodiscard]] std::optional<std::string> unschedulable_because(const DeviceKey& key) const;

  /// Pools by (driver, pool name).
  [[nodiscard]] const std::map<std::pair<std::string, std::string>, Pool>& pools() const { return pools_; }

 private:
  void rebuild(const std::string& driver, const std::string& pool);

  std::map<std::string, k8s::ResourceSlice, std::less<>> slices_;   // by UID
  std::map<std::string, k8s::DeviceTaintRule, std::less<>> rules_;  // by UID
  std::map<std::pair<std::string, std::string>, std::set<std::string>> slices_of_pool_;
  std::map<std::pair<std::string, std::string>, Pool> pools_;
};

}  // namespace dhc
