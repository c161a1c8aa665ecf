#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "domain/cluster/inventory.h"
#include "domain/cluster/node_books.h"
#include "k8s-client/model/node.h"

namespace dhc {

/// Where something may be free, so that nobody who looks for a place looks at every node. What stands here may be taken
/// all the same; what does not is taken, unless a pod gives it back. Part of the World.
class Room {
 public:
  /// Nodes, each with the number of its pools where that matters.
  using Nodes = std::map<std::string, std::int64_t, std::less<>>;
  using IsAllocated = std::function<bool(const DeviceKey&)>;

  /// What the node lists, or what its pods hold, may be another; null: it is gone.
  void note_node(const std::string& name, const k8s::Node* node, const NodeBook& book);
  /// What the pool has, whose it is, or what claims hold of it, may be another.
  void note_pool(const Inventory::PoolName& name) { stale_.insert(name); }
  /// Looks at the pools that were noted: once a turn.
  void settle(const Inventory& inventory, const IsAllocated& is_allocated);

  /// Nodes that may have some of this device-plugin resource free.
  [[nodiscard]] const Nodes& with_resource(std::string_view resource) const { return find(by_resource_, resource); }
  /// Nodes of whose devices of this DRA driver no claim holds some.
  [[nodiscard]] const Nodes& with_devices_of(std::string_view driver) const { return find(by_driver_, driver); }
  /// The published pools of a node, by driver and name; of no node: those that are network-attached, or nobody's yet.
  [[nodiscard]] const std::set<Inventory::PoolName>& pools_on(std::string_view node) const;
  /// Whether the driver has published pools that are no node's.
  [[nodiscard]] bool is_everywhere(std::string_view driver) const;

 private:
  using Index = std::map<std::string, Nodes, std::less<>>;
  struct Place {
    std::string node;
    bool has_room = false;
  };
  [[nodiscard]] const Nodes& find(const Index& index, std::string_view name) const;
  static void count(Index& index, const std::string& what, const std::string& node, std::int64_t by);
  void forget_pool(const Inventory::PoolName& name);

  Index by_resource_;
  std::map<std::string, std::set<std::string>, std::less<>> on_node_;  // resources of which it may have some free
  Index by_driver_;
  std::map<Inventory::PoolName, Place> pools_;  // those that are published
  std::map<std::string, std::set<Inventory::PoolName>, std::less<>> pools_on_;
  std::set<Inventory::PoolName> stale_;
  Nodes nowhere_;
  std::set<Inventory::PoolName> no_pools_;
};

}  // namespace dhc
