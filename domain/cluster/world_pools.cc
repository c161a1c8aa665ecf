// The part of World that follows slices, and says whose a pool is that several nodes claim.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

void World::put(k8s::ResourceSlice&& slice, const Now& now) {
  pools_may_be_stale_ = true;  // one that changed its pool has left one
  const auto left = inventory_.pool_of_slice(slice.meta.uid);
  const std::pair pool(slice.driver, slice.pool);
  inventory_.upsert(std::move(slice));
  if (left && *left != pool) driver_taints_.look_at(inventory_, left->first, left->second, now);
  driver_taints_.look_at(inventory_, pool.first, pool.second, now);
}

void World::drop_slice(const std::string& uid, const Now& now) {
  pools_may_be_stale_ = true;
  const auto left = inventory_.pool_of_slice(uid);
  inventory_.remove_slice(uid);
  if (left) driver_taints_.look_at(inventory_, left->first, left->second, now);
}

void World::give_home(const Inventory::PoolName& pool, const std::string& node, const Now& now) {
  inventory_.give_home(pool, node);
  driver_taints_.look_at(inventory_, pool.first, pool.second, now);
}

/// What the process before this one knew: a slice of another node may be all that stands in a pool at a start.
void World::settle_remembered_pools(const Now& now) {
  if (homes_.empty()) return;
  std::map<std::string, std::string> names;  // by UID
  for (const auto& [name, node] : nodes_) names.emplace(node.meta.uid, name);
  for (const auto& [pool, uid] : std::exchange(homes_, {})) {
    const auto home = names.find(uid);
    if (home != names.end()) give_home(pool, home->second, now);
  }
}

/// A pod runs where its devices are.
void World::settle_contested_pools(const Now& now) {
  const auto contested = inventory_.contested_pools();
  if (contested.empty()) return;
  std::map<Inventory::PoolName, std::set<std::string>> held_on;
  for (const auto& [uid, record] : pods_) {
    if (record.pod.node_name.empty() || !is_live(record.pod)) continue;
    for (const auto& held_device : record.held_devices) {
      const auto& key = held_device.key;
      const auto pool = contested.find({key.scope, key.place});
      if (key.source != DeviceKey::Source::Dra || pool == contested.end()) continue;
      if (pool->second.contains(record.pod.node_name)) held_on[pool->first].insert(record.pod.node_name);
    }
  }
  for (const auto& [pool, nodes] : held_on) {
    if (nodes.size() == 1) give_home(pool, *nodes.begin(), now);
  }
}

void World::settle_pools(const Now& now) {
  settle_remembered_pools(now);
  if (!std::exchange(pools_may_be_stale_, false)) return;
  for (const auto& [driver, pool] : inventory_.forget_nodes_but(nodes_)) {
    driver_taints_.look_at(inventory_, driver, pool, now);
  }
  driver_taints_.forget_but(inventory_);
  settle_contested_pools(now);
}

}  // namespace dhc
