#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/contract/device_key.h"
#include "domain/policy/policy.h"
#include "simulator/script/cluster.h"

namespace dhc::test {

/// Which devices the server shows to be out of service on a controller's account, and whether they are more than its
/// caps allow (I18). It counts no device too many: those with a rule of ours, and those of plugins that a pod was
/// evicted from, until their node shows all devices allocatable or a pod calls them Healthy.
class TakenOut {
 public:
  /// The most devices that were ever known of a driver or resource, on a node or (empty) in the cluster.
  using Known = std::function<std::int64_t(const std::string&, const std::string&)>;

  explicit TakenOut(const sim::Cluster& cluster) : cluster_(cluster) {}

  /// What was out then counts no more: with the rules that came back it may be more than was ever taken out at once.
  void etcd_restored();
  /// The limits have changed, or nobody remembers what was done: only what is taken out from now on is too much.
  void begun_anew() { too_many_.clear(); }

  void evicted(const DeviceKey& key, const Now& now);
  /// A pod calls the plugin's device Healthy.
  void healed(const DeviceKey& key) { out_.erase(key); }

  /// After each step. More than a cap allows is said when it has been so in calm for two minutes: a rule whose incident
  /// is over stands until it is deleted.
  void look(const Policy& policy, const Known& known, bool calm, const Now& now);

  /// Whether the device was out as of the last look.
  [[nodiscard]] bool has(const DeviceKey& key) const { return out_.contains(key); }
  [[nodiscard]] std::vector<std::string> take_broken() { return std::exchange(broken_, {}); }

 private:
  struct Out {
    WallTime at;
    bool counts = true;  ///< Not what was there before the last restore.
  };
  using Place = std::pair<std::string, std::string>;  // driver or resource, and node or nothing

  void read_rules(const Now& now);
  void read_nodes();
  [[nodiscard]] std::map<Place, std::int64_t> count(const Policy& policy, const Now& now) const;

  const sim::Cluster& cluster_;
  std::map<DeviceKey, Out> out_;
  std::set<std::string> tainted_nodes_;
  std::uint64_t seen_rv_ = 0;             // of nodes
  std::map<Place, std::int64_t> before_;  // how many were out at the last look
  std::map<Place, MonoTime> too_many_;    // since when, in calm, more are out than a cap allows
  bool is_restored_ = false;              // and not looked at since
  std::vector<std::string> broken_;
};

}  // namespace dhc::test
