#include "domain/cluster/room.h"

#include <algorithm>
#include <utility>

namespace dhc {

const Room::Nodes& Room::find(const Index& index, std::string_view name) const {
  const auto found = index.find(name);
  return found == index.end() ? nowhere_ : found->second;
}

void Room::count(Index& index, const std::string& what, const std::string& node, std::int64_t by) {
  const auto nodes = index.try_emplace(what).first;
  const auto found = nodes->second.try_emplace(node, 0).first;
  found->second += by;
  if (found->second != 0) return;
  nodes->second.erase(found);
  if (nodes->second.empty()) index.erase(nodes);
}

void Room::note_node(const std::string& name, const k8s::Node* node, const NodeBook& book) {
  std::set<std::string> now;
  if (node != nullptr) {
    for (const auto& listed : node->allocatable) {
      const auto known = book.resources().find(listed.resource);
      const bool is_taken = known != book.resources().end() &&
                            std::min(listed.amount, known->second.capacity - known->second.held.unhealthy) <=
                                known->second.held.requested;
      if (listed.amount > 0 && !is_taken) now.insert(listed.resource);
    }
  }
  const auto at = on_node_.find(name);
  if (at == on_node_.end() ? now.empty() : at->second == now) return;
  if (at != on_node_.end()) {
    for (const auto& resource : at->second) count(by_resource_, resource, name, -1);
    on_node_.erase(at);
  }
  for (const auto& resource : now) count(by_resource_, resource, name, 1);
  if (!now.empty()) on_node_.emplace(name, std::move(now));
}

void Room::forget_pool(const Inventory::PoolName& name) {
  const auto found = pools_.find(name);
  if (found == pools_.end()) return;
  const auto& [node, has_room] = found->second;
  if (has_room) count(by_driver_, name.first, node, -1);
  const auto on = pools_on_.find(node);
  on->second.erase(name);
  if (on->second.empty()) pools_on_.erase(on);
  pools_.erase(found);
}

void Room::settle(const Inventory& inventory, const IsAllocated& is_allocated) {
  for (const auto& name : std::exchange(stale_, {})) {
    forget_pool(name);
    const auto found = inventory.pools().find(name);
    if (found == inventory.pools().end() || !found->second.published) continue;
    const auto& pool = found->second;
    const bool has_room = std::ranges::any_of(pool.devices, [&](const auto& device) {
      return !is_allocated(DeviceKey::dra(name.first, name.second, device.first));
    });
    pools_.emplace(name, Place{.node = pool.node, .has_room = has_room});
    pools_on_[pool.node].insert(name);
    if (has_room) count(by_driver_, name.first, pool.node, 1);
  }
}

const std::set<Inventory::PoolName>& Room::pools_on(std::string_view node) const {
  const auto found = pools_on_.find(node);
  return found == pools_on_.end() ? no_pools_ : found->second;
}

bool Room::is_everywhere(std::string_view driver) const {
  const auto& pools = pools_on({});
  const auto first = pools.lower_bound({std::string(driver), {}});
  return first != pools.end() && first->first == driver;
}

}  // namespace dhc
