#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

class World;

/// The physical devices that pods hold, place by place: a node for a plugin's resource, a pool for a DRA driver.
/// Counted as holders come and go, so that what a workload's share is costs nothing of the cluster's size. Part of the
/// World.
class HeldCards {
 public:
  struct Place {
    DeviceKey at;                          ///< Of its devices, without a name.
    std::set<std::string> devices;         ///< By name, those that have a holder.
    std::int64_t cards = 0;                ///< Physical ones among them.
    std::string unit;                      ///< What breaks together: the node, or a pool of the network.
    std::optional<WallTime> driver_began;  ///< Its driver or plugin there; none: not known.

    [[nodiscard]] DeviceKey key_of(const std::string& device) const;
  };

  /// The device has a holder.
  void add(const DeviceKey& key);
  /// The device has no holder any more.
  void remove(const DeviceKey& key);
  /// The pool's node, or the cards of its devices, may be others.
  void note_pool(const std::string& driver, const std::string& pool);
  /// Who reports on the node's devices, or since when, may be another.
  void note_node(const std::string& node);

  /// Counts what has changed since the last call: once a turn, after whatever the counts depend on.
  void settle(const World& world);

  /// Null: no device is held there.
  [[nodiscard]] const Place* place_of(const DeviceKey& key) const;
  /// The places of the driver or resource in the same unit, this one among them.
  [[nodiscard]] std::vector<const Place*> places_beside(const DeviceKey& key) const;
  /// How many physical devices of the driver or resource are held.
  [[nodiscard]] std::int64_t count(std::string_view scope) const;
  /// Of those the ones whose driver or plugin began no earlier than `then`, or it is not known when.
  [[nodiscard]] std::int64_t count_since(std::string_view scope, WallTime then) const;

 private:
  struct Scope {
    std::int64_t cards = 0;
    std::int64_t undated = 0;
    std::map<WallTime, std::int64_t> by_start;  // of the driver or plugin
  };
  void count_in(const Place& place);
  void count_out(const Place& place);

  std::map<DeviceKey, Place> places_;  // by `at`
  std::map<std::string, Scope, std::less<>> scopes_;
  std::map<std::pair<std::string, std::string>, std::set<DeviceKey>> units_;  // by unit and scope
  std::set<DeviceKey> stale_;
};

}  // namespace dhc
