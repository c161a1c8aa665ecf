// The part of World that follows slices, and says whose a pool is that several nodes claim.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

namespace {

/// How many pools that nobody publishes any more are remembered of each driver on a node; and of pools without a node.
constexpr std::size_t kMostLeftPools = 64;
constexpr std::size_t kMostLeftPoolsOfNoNode = 1024;

}  // namespace

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
  for (const auto& [driver, pool] : inventory_.take_begun_anew()) {
    touched_.pool({driver, pool});
    driver_taints_.begin_anew(driver, pool);
  }
  note_other_cards(inventory_.take_replaced(), now);
  for (const auto& name : inventory_.take_changed()) {
    touched_.pool(name);
    look_again_at_incidents_of(name);
    held_cards_.note_pool(name.first, name.second);
    room_.note_pool(name);
    driver_taints_.look_at(inventory_, name.first, name.second, now);
    dirty_pools_.insert(name);
  }
}

/// What a node has listed is gone with it: another one under its name lists its own.
void World::forget_cards_of_turned_nodes() {
  if (turned_nodes_.empty()) return;
  for (const auto& [name, pool] : inventory_.pools()) {
    if (!turned_nodes_.contains(pool.node)) continue;
    cards_.forget({.source = DeviceKey::Source::Dra, .place = name.second, .scope = name.first});
    dirty_pools_.insert(name);
  }
}

void World::count_pools(const Now& now) {
  forget_cards_of_turned_nodes();
  for (const auto& name : std::exchange(dirty_pools_, {})) {
    const CardLister lister{.source = DeviceKey::Source::Dra, .place = name.second, .scope = name.first};
    const auto found = inventory_.pools().find(name);
    const bool is_known = found != inventory_.pools().end();
    const bool is_published = is_known && found->second.published;
    if (is_known) {
      cards_.note(lister, found->second.node, {.cards = is_published ? found->second.cards : 0}, now);
    } else {
      cards_.forget(lister);
    }
    is_known && !is_published ? (void)unpublished_pools_.try_emplace(name, now.mono)
                              : (void)unpublished_pools_.erase(name);
  }
}

bool World::is_in_use(const Inventory::PoolName& pool) const {
  const auto is_of = [&](const DeviceKey& key) {
    return key.source == DeviceKey::Source::Dra && key.scope == pool.first && key.place == pool.second;
  };
  return guarded_pools_.contains(pool) || !inventory_.claimants_of(pool).empty() ||
         std::ranges::any_of(allocated_, [&](const auto& entry) { return is_of(entry.first); });
}

/// What nobody has published or used for long is not remembered for as long as its node lives.
void World::forget_pools(const Now& now) {
  for (auto at = unpublished_pools_.begin(); at != unpublished_pools_.end();) {
    auto& [name, since] = *at;
    if (now.mono - since < kCardMemory) {
      ++at;
    } else if (is_in_use(name)) {
      since = now.mono;
      ++at;
    } else {
      inventory_.take_home(name);
      at = unpublished_pools_.erase(at);
    }
  }
}

/// What the process before this one knew: a slice of another node may be all that stands in a pool at a start. A node
/// that is gone, or none, is the home of a guarded pool alone.
void World::settle_remembered_pools() {
  if (homes_.empty()) return;
  std::map<std::string, std::string> names;  // by UID
  for (const auto& [name, node] : nodes_) names.emplace(node.meta.uid, name);
  // A record that names no node may be of a pool that its node had left to several others.
  const auto may_be_home = [&](const Inventory::PoolName& pool, const std::string& node) {
    const auto claimants = inventory_.claimants_of(pool);
    return guarded_pools_.contains(pool) || claimants.empty() || claimants.contains(node);
  };
  for (const auto& [pool, home] : std::exchange(homes_, {})) {
    const auto by_uid = names.find(home.node_uid);
    const bool is_named = home.node && (guarded_pools_.contains(pool) || nodes_.contains(*home.node));
    if (is_named) {
      inventory_.give_home(pool, *home.node);
    } else if (!home.node && by_uid != names.end() && may_be_home(pool, by_uid->second)) {
      inventory_.give_home(pool, by_uid->second);
    }
  }
  pools_may_be_stale_ = true;
}

/// Of each driver on a node the last ones alone: pools that change their names must not fill the memory.
void World::bound_pools() {
  if (unpublished_pools_.size() <= kMostLeftPools) return;
  using Left = std::vector<std::pair<MonoTime, Inventory::PoolName>>;
  std::map<std::pair<std::string, std::string>, Left> by_driver;  // and node
  for (const auto& [name, since] : unpublished_pools_) {
    by_driver[{name.first, inventory_.pools().at(name).node}].emplace_back(since, name);
  }
  for (auto& [driver, left] : by_driver) {
    const auto most = driver.second.empty() ? kMostLeftPoolsOfNoNode : kMostLeftPools;
    if (left.size() <= most) continue;
    std::ranges::sort(left);
    left.resize(left.size() - most);
    for (const auto& [since, name] : left) {
      if (is_in_use(name)) continue;
      inventory_.take_home(name);
      unpublished_pools_.erase(name);
    }
  }
}

bool World::has_disputed_device(std::span<const HeldDevice> held_devices) const {
  const auto& disputed = inventory_.disputed_pools();
  return !disputed.empty() && std::ranges::any_of(held_devices, [&](const HeldDevice& held_device) {
    const auto& key = held_device.key;
    return key.source == DeviceKey::Source::Dra && disputed.contains({key.scope, key.place});
  });
}

void World::note_guarded_pools(std::set<Inventory::PoolName> pools) {
  if (guarded_pools_ == pools) return;
  guarded_pools_ = std::move(pools);
  pools_may_be_stale_ = true;
}

/// Those that run: where a pod that waits for its node stands is anybody's word.
std::map<Inventory::PoolName, std::set<std::string>> World::holders_of_disputed_pools() const {
  std::map<Inventory::PoolName, std::set<std::string>> held_on;
  const auto& disputed = inventory_.disputed_pools();
  for (const auto& [uid, record] : pods_) {
    if (record.pod.node_name.empty() || record.pod.phase != k8s::PodPhase::Running) continue;
    for (const auto& held_device : record.held_devices) {
      const auto& key = held_device.key;
      const Inventory::PoolName pool(key.scope, key.place);
      if (key.source == DeviceKey::Source::Dra && disputed.contains(pool)) held_on[pool].insert(record.pod.node_name);
    }
  }
  return held_on;
}

/// A pod runs where its devices are: those of one alone of the nodes that publish the pool say whose it is. A node that
/// has left its pool for long, with no pod there on its devices, no longer has it.
void World::settle_disputed_pool(const Inventory::PoolName& name, const std::set<std::string>& held_on,
                                 const Now& now) {
  const auto& pool = inventory_.pools().at(name);
  const bool is_guarded = pool.is_settled && guarded_pools_.contains(name);
  if (pool.is_network_attached() || is_guarded) return (void)left_pools_.erase(name);
  std::set<std::string> homes;
  std::ranges::set_intersection(held_on, inventory_.claimants_of(name), std::inserter(homes, homes.end()));
  if (homes.size() == 1 && !held_on.contains(pool.node)) inventory_.give_home(name, *homes.begin());
  const bool is_left = pool.is_settled && pool.node != name.second && !pool.published && !held_on.contains(pool.node);
  if (!is_left) {
    left_pools_.erase(name);
  } else if (now.mono - left_pools_.try_emplace(name, now.mono).first->second >= kLongestUnknown) {
    inventory_.take_home(name);
    left_pools_.erase(name);
  }
}

void World::settle_disputed_pools(const Now& now) {
  if (!inventory_.disputed_pools().empty()) {
    const auto held_on = holders_of_disputed_pools();
    const auto disputed = inventory_.disputed_pools();
    for (const auto& name : disputed) {
      const auto found = held_on.find(name);
      settle_disputed_pool(name, found == held_on.end() ? std::set<std::string>() : found->second, now);
    }
  }
  const auto& left = inventory_.disputed_pools();
  std::erase_if(left_pools_, [&](const auto& entry) { return !left.contains(entry.first); });
  std::erase_if(disputed_since_, [&](const auto& entry) { return !left.contains(entry.first); });
  for (const auto& name : left) disputed_since_.try_emplace(name, now.wall);
}

void World::settle_pools(const Now& now) {
  settle_remembered_pools();
  const bool is_due =
      std::ranges::any_of(left_pools_, [&](const auto& entry) { return now.mono - entry.second >= kLongestUnknown; });
  if (std::exchange(pools_may_be_stale_, false) || is_due) {
    inventory_.settle_by_nodes(guarded_pools_);
    driver_taints_.forget_but(inventory_);
    settle_disputed_pools(now);
  }
  forget_pools(now);
  look_at_pools(now);
  count_pools(now);
  bound_pools();
  look_at_pools(now);
  count_pools(now);
}

}  // namespace dhc
