// The part of World that follows slices, and says whose a pool is that several nodes claim.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

void World::put(k8s::ResourceSlice&& slice, const Now& now) {
  pools_may_be_stale_ = true;
  inventory_.upsert(std::move(slice));
  look_at_pools(now);
}

void World::drop_slice(const std::string& uid, const Now& now) {
  pools_may_be_stale_ = true;
  inventory_.remove_slice(uid);
  look_at_pools(now);
}

/// What drivers have done since the last look: a taint that was gone in between is another, also within one turn.
void World::look_at_pools(const Now& now) {
  for (const auto& [driver, pool] : inventory_.take_begun_anew()) driver_taints_.begin_anew(driver, pool);
  for (const auto& [driver, pool] : inventory_.take_changed()) driver_taints_.look_at(inventory_, driver, pool, now);
}

/// What the process before this one knew: a slice of another node may be all that stands in a pool at a start.
void World::settle_remembered_pools() {
  if (homes_.empty()) return;
  std::map<std::string, std::string> names;  // by UID
  for (const auto& [name, node] : nodes_) names.emplace(node.meta.uid, name);
  for (const auto& [pool, uid] : std::exchange(homes_, {})) {
    const auto home = names.find(uid);
    if (home != names.end()) inventory_.give_home(pool, home->second);
  }
}

bool World::has_disputed_device(const std::vector<HeldDevice>& held_devices) const {
  const auto& disputed = inventory_.disputed_pools();
  return !disputed.empty() && std::ranges::any_of(held_devices, [&](const HeldDevice& held_device) {
    const auto& key = held_device.key;
    return key.source == DeviceKey::Source::Dra && disputed.contains({key.scope, key.place});
  });
}

std::map<Inventory::PoolName, std::set<std::string>> World::holders_of_disputed_pools() const {
  std::map<Inventory::PoolName, std::set<std::string>> held_on;
  const auto& disputed = inventory_.disputed_pools();
  for (const auto& [uid, record] : pods_) {
    if (record.pod.node_name.empty() || !is_live(record.pod)) continue;
    for (const auto& held_device : record.held_devices) {
      const auto& key = held_device.key;
      const Inventory::PoolName pool(key.scope, key.place);
      if (key.source == DeviceKey::Source::Dra && disputed.contains(pool)) held_on[pool].insert(record.pod.node_name);
    }
  }
  return held_on;
}

/// A pool of an open incident stays its node's, whatever is published and held elsewhere.
bool World::has_open_incident(const Inventory::PoolName& pool) const {
  const auto found = incidents_.lower_bound(DeviceKey::dra(pool.first, pool.second, {}));
  return found != incidents_.end() && found->first.source == DeviceKey::Source::Dra &&
         found->first.scope == pool.first && found->first.place == pool.second;
}

/// A pod runs where its devices are: those of one node alone that publishes the pool say whose it is. A node that has
/// left its pool for long, with no pod on its devices, no longer has it.
void World::settle_disputed_pools(const Now& now) {
  const auto disputed = inventory_.disputed_pools();
  std::erase_if(left_pools_, [&](const auto& entry) { return !disputed.contains(entry.first); });
  if (disputed.empty()) return;
  const auto held_on = holders_of_disputed_pools();
  for (const auto& name : disputed) {
    const auto& pool = inventory_.pools().at(name);
    const bool is_network_attached = pool.is_settled && pool.node.empty();
    if (is_network_attached || (pool.is_settled && has_open_incident(name))) continue;
    const auto holders = held_on.find(name);
    const bool is_one = holders != held_on.end() && holders->second.size() == 1;
    if (is_one && inventory_.claimants_of(name).contains(*holders->second.begin())) {
      inventory_.give_home(name, *holders->second.begin());
    }
    const bool is_left = pool.is_settled && pool.node != name.second && !pool.published && holders == held_on.end();
    if (!is_left) {
      left_pools_.erase(name);
    } else if (now.mono - left_pools_.try_emplace(name, now.mono).first->second >= kLongestUnknown) {
      inventory_.take_home(name);
      left_pools_.erase(name);
    }
  }
}

void World::settle_pools(const Now& now) {
  settle_remembered_pools();
  const bool is_due =
      std::ranges::any_of(left_pools_, [&](const auto& entry) { return now.mono - entry.second >= kLongestUnknown; });
  if (std::exchange(pools_may_be_stale_, false) || is_due) {
    inventory_.settle_by_nodes();
    driver_taints_.forget_but(inventory_);
    settle_disputed_pools(now);
  }
  look_at_pools(now);
}

}  // namespace dhc
