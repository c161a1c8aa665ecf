// The part of Inventory that makes pools of slices: whose slices a pool is made of, and what they say of its devices.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/cluster/card_names.h"
#include "domain/cluster/inventory.h"
#include "domain/cluster/physical_cards.h"

namespace dhc {

namespace {

/// Whether they are all of their generation.
bool is_whole(const std::vector<const k8s::ResourceSlice*>& slices) {
  return std::ranges::all_of(
      slices, [&](const auto* slice) { return slice->pool_slices <= static_cast<std::int64_t>(slices.size()); });
}

void note_partitions(Pool& pool) {
  pool.partitions.clear();
  for (const auto* devices : {&pool.devices, &pool.awaited}) {
    for (const auto& [name, device] : *devices) pool.partitions[device.card].insert(name);
  }
  std::erase_if(pool.partitions, [](const auto& entry) { return entry.second.size() < 2; });
}

}  // namespace

std::string Inventory::node_of(const DeviceKey& key) const {
  if (key.source != DeviceKey::Source::Dra) return key.place;
  const auto pool = pools_.find({key.scope, key.place});
  return pool == pools_.end() ? std::string() : pool->second.node;
}

/// A node may publish slices of its own alone, under any pool's name: a pool keeps the node that it was first published
/// for. One that is named after a node is that node's, whoever came first, and while it publishes nothing. A slice that
/// names no node is no kubelet's: a pool that begins with one is no node's.
std::optional<std::string> Inventory::home_of(const std::string& name, const std::set<std::string>& claimants,
                                              const Pool& pool) const {
  if (pool.is_network_attached() || (pool.is_settled && pool.node == name)) return pool.node;
  if (claimants.contains(name)) return name;
  if (claimants.contains("") && !pool.is_settled) return std::string();
  if (nodes_.contains(name)) return name;
  if (pool.is_settled) return pool.node;
  return claimants.size() == 1 ? std::optional(*claimants.begin()) : std::nullopt;
}

void Inventory::settle_home(const PoolName& name, Pool& pool) {
  const auto claimants = claimants_of(name);
  const auto home = home_of(name.second, claimants, pool);
  if (pool.is_settled && home != pool.node) {
    pool = Pool{};
    begun_anew_.insert(name);
  }
  pool.is_settled = home.has_value();
  pool.node = home.value_or(std::string());
  pool.contested = !home && claimants.size() > 1;
  const bool is_disputed = std::ranges::any_of(claimants, [&](const auto& node) { return !home || node != *home; });
  is_disputed ? (void)disputed_.insert(name) : (void)disputed_.erase(name);
}

std::set<std::string> Inventory::claimants_of(const PoolName& name) const {
  std::set<std::string> nodes;
  const auto uids = slices_of_pool_.find(name);
  if (uids == slices_of_pool_.end()) return nodes;
  for (const auto& uid : uids->second) nodes.insert(slices_.find(uid)->second.node_name);
  return nodes;
}

/// The pool's slices that count: of its own node, and of those the highest generation.
std::vector<const k8s::ResourceSlice*> Inventory::slices_that_count(const PoolName& name, const Pool& pool) const {
  std::vector<const k8s::ResourceSlice*> found;
  const auto uids = slices_of_pool_.find(name);
  if (uids == slices_of_pool_.end() || !pool.is_settled) return found;
  for (const auto& uid : uids->second) {
    const auto& slice = slices_.find(uid)->second;
    if (slice.node_name != pool.node) continue;
    if (!found.empty() && slice.generation > found.front()->generation) found.clear();
    if (found.empty() || slice.generation == found.front()->generation) found.push_back(&slice);
  }
  return found;
}

void Inventory::rebuild(const std::string& driver, const std::string& pool) {
  const PoolName name(driver, pool);
  auto& known = pools_[name];
  changed_.insert(name);
  settle_home(name, known);
  const auto slices = slices_that_count(name, known);
  known.published = !slices.empty();
  if (slices.empty()) {
    for (auto& [device, remembered] : known.devices) remembered.taints.clear();  // they hold nobody off any more
    return;
  }
  Pool before = std::move(known);
  known = {.node = before.node, .is_settled = before.is_settled, .contested = before.contested};
  // What is no node's may be on several, each with a bus of its own.
  const auto cards = known.node.empty() ? std::map<std::string_view, std::string>() : physical_cards(slices);
  for (const auto* slice : slices) {
    for (const auto& device : slice->devices) {
      const auto card = cards.find(device.name);
      known.devices[device.name] = {.taints = device.taints,
                                    .attributes = device.attributes,
                                    .card = card == cards.end() ? device.name.str() : card->second};
    }
  }
  known.shared_identities = shared_identities(known.devices);
  known.cards = cards_listed(name, known, slices);
  known.is_whole = is_whole(slices);
  note_replaced(name, before, known);
  if (!known.is_whole) {
    known.last_whole = before.is_whole ? before.devices : std::move(before.last_whole);
    known.awaited = std::move(before.devices);
    known.awaited.merge(before.awaited);
    std::erase_if(known.awaited, [&](const auto& entry) { return known.devices.contains(entry.first); });
  }
  note_partitions(known);
}

/// A driver publishes a generation slice by slice. Until the pool is whole those that are not published anew stand with
/// it: a pool that is published often would otherwise be counted by its first slices alone.
std::int64_t Inventory::cards_listed(const PoolName& name, const Pool& pool,
                                     const std::vector<const k8s::ResourceSlice*>& newest) const {
  std::set<std::string_view> cards;
  if (is_whole(newest)) {
    for (const auto& [device, published] : pool.devices) cards.insert(published.card);
    return static_cast<std::int64_t>(cards.size());
  }
  auto slices = newest;
  for (const auto& uid : slices_of_pool_.find(name)->second) {
    const auto& slice = slices_.find(uid)->second;
    if (slice.node_name == pool.node && slice.generation != newest.front()->generation) slices.push_back(&slice);
  }
  if (pool.node.empty()) {
    for (const auto* slice : slices) {
      for (const auto& device : slice->devices) cards.insert(device.name);
    }
    return static_cast<std::int64_t>(cards.size());
  }
  const auto by_device = physical_cards(slices);
  for (const auto& [device, card] : by_device) cards.insert(card);
  return static_cast<std::int64_t>(cards.size());
}

/// As if it had never been published.
void Inventory::begin_anew(const PoolName& name, Pool fresh) {
  pools_[name] = std::move(fresh);
  begun_anew_.insert(name);
  rebuild(name.first, name.second);
}

void Inventory::give_home(const PoolName& name, const std::string& node) {
  const auto found = pools_.find(name);
  const bool is_known = found != pools_.end() && found->second.is_settled;
  // Its own name says more.
  if (is_known && (found->second.node == node || found->second.node == name.second)) return;
  begin_anew(name, {.node = node, .is_settled = true});
}

void Inventory::take_home(const PoolName& name) {
  begin_anew(name, {});
  if (claimants_of(name).empty()) pools_.erase(name);
}

void Inventory::note_node(const std::string& name, bool exists) {
  exists ? (void)nodes_.insert(name) : (void)nodes_.erase(name);
}

void Inventory::settle_by_nodes(const std::set<PoolName>& kept) {
  std::vector<PoolName> named;
  std::vector<PoolName> left;
  for (const auto& [name, pool] : pools_) {
    if (pool.is_network_attached()) continue;
    if (pool.node != name.second && nodes_.contains(name.second)) named.push_back(name);
    const bool is_kept = pool.is_settled && kept.contains(name);
    if (!pool.published && !nodes_.contains(pool.node) && !is_kept) left.push_back(name);
  }
  for (const auto& [driver, pool] : named) rebuild(driver, pool);
  for (const auto& name : left) take_home(name);
  std::erase_if(slices_of_pool_, [](const auto& entry) { return entry.second.empty(); });
}

std::string_view Inventory::card_of(const DeviceKey& key) const {
  if (key.source == DeviceKey::Source::Plugin) return card_by_name(key);
  const auto pool = pools_.find({key.scope, key.place});
  if (pool == pools_.end()) return key.device;
  for (const auto* devices : {&pool->second.devices, &pool->second.awaited}) {
    if (const auto device = devices->find(key.device); device != devices->end()) return device->second.card;
  }
  return key.device;
}

std::vector<DeviceKey> Inventory::others_on_card(const DeviceKey& key) const {
  constexpr std::size_t kMostOfACard = 64;
  std::vector<DeviceKey> others;
  const auto pool = pools_.find({key.scope, key.place});
  if (key.source != DeviceKey::Source::Dra || pool == pools_.end() || pool->second.partitions.empty()) return others;
  const auto card = pool->second.partitions.find(card_of(key));
  if (card == pool->second.partitions.end() || card->second.size() > kMostOfACard) return others;
  for (const auto& device : card->second) {
    if (device != key.device) others.push_back(DeviceKey::dra(key.scope, key.place, device));
  }
  return others;
}

}  // namespace dhc
