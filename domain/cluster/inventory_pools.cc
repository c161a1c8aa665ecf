// The part of Inventory that makes pools of slices: whose slices a pool is made of, and what they say of its devices.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "domain/cluster/inventory.h"
#include "k8s-client/protocol/ascii.h"

namespace dhc {

namespace {

/// **Source:** NVIDIA's and AMD's DRA drivers: a partition carries its card's `pciBusID`, or the card's UUID as
/// `parentUUID`. Other attributes prove nothing: a TPU's `uuid` is its node's.
std::string card_named_by(const k8s::SliceDevice& device) {
  for (const std::string_view word : {"pcibusid", "parentuuid"}) {
    for (const auto& [name, value] : device.attributes) {
      if (!value.empty() && k8s::to_lower_ascii(std::string_view(name).substr(name.rfind('/') + 1)) == word)
        return value;
    }
  }
  return device.name;
}

}  // namespace

std::optional<DeviceIdentity> Inventory::identity_of(const DeviceKey& key, std::string_view attribute) const {
  const auto* device = published(key);
  if (device == nullptr) return std::nullopt;
  if (!attribute.empty()) {
    const auto value = k8s::find(device->attributes, attribute);
    if (!value || value->empty()) return std::nullopt;
    return DeviceIdentity{.attribute = std::string(attribute), .value = std::string(*value)};
  }
  for (const std::string_view word : {"uuid", "serialnumber", "serial"}) {
    for (const auto& [name, value] : device->attributes) {
      if (k8s::to_lower_ascii(std::string_view(name).substr(name.rfind('/') + 1)) == word && !value.empty()) {
        return DeviceIdentity{.attribute = name, .value = value};
      }
    }
  }
  return std::nullopt;
}

std::string Inventory::node_of(const DeviceKey& key) const {
  if (key.source != DeviceKey::Source::Dra) return key.place;
  const auto pool = pools_.find({key.scope, key.place});
  return pool == pools_.end() ? std::string() : pool->second.node;
}

/// A node may publish slices of its own alone, under any pool's name: a pool keeps the node that it was first published
/// for. One that is named after a node is that node's, whoever came first.
void Inventory::settle_home(const std::string& name, const std::set<std::string>& nodes, Pool& pool) {
  const bool is_network_attached = pool.is_settled && pool.node.empty();
  if (!is_network_attached && nodes.contains(name)) {
    pool.node = name;
    pool.is_settled = true;
  } else if (!pool.is_settled && nodes.size() == 1) {
    pool.node = *nodes.begin();
    pool.is_settled = true;
  }
  pool.contested = !pool.is_settled && nodes.size() > 1;
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
  count(driver, known, false);
  std::set<std::string> nodes;
  for (const auto& uid : slices_of_pool_[name]) nodes.insert(slices_.find(uid)->second.node_name);
  settle_home(pool, nodes, known);
  const auto slices = slices_that_count(name, known);
  known.published = !slices.empty();
  if (slices.empty()) {
    for (auto& [device, remembered] : known.devices) remembered.taints.clear();  // they hold nobody off any more
    return count(driver, known, true);
  }
  known.devices.clear();
  std::set<std::string> cards;
  for (const auto* slice : slices) {
    for (const auto& device : slice->devices) {
      auto card = card_named_by(device);
      cards.insert(card);
      known.devices[device.name] = {.taints = device.taints, .attributes = device.attributes, .card = std::move(card)};
    }
  }
  known.cards = static_cast<std::int64_t>(cards.size());
  count(driver, known, true);
}

/// As if it had never been published.
void Inventory::begin_anew(const PoolName& name, Pool fresh) {
  auto& pool = pools_[name];
  count(name.first, pool, false);
  pool = std::move(fresh);
  rebuild(name.first, name.second);
}

void Inventory::give_home(const PoolName& name, const std::string& node) {
  const auto found = pools_.find(name);
  const bool is_known = found != pools_.end() && found->second.is_settled;
  // Its own name says more.
  if (is_known && (found->second.node == node || found->second.node == name.second)) return;
  begin_anew(name, {.node = node, .is_settled = true});
}

std::map<Inventory::PoolName, std::set<std::string>> Inventory::contested_pools() const {
  std::map<PoolName, std::set<std::string>> found;
  for (const auto& [name, pool] : pools_) {
    if (!pool.contested) continue;
    for (const auto& uid : slices_of_pool_.at(name)) found[name].insert(slices_.find(uid)->second.node_name);
  }
  return found;
}

std::vector<Inventory::PoolName> Inventory::forget_nodes_but(const std::map<std::string, k8s::Node>& nodes) {
  std::vector<PoolName> left;
  for (const auto& [name, pool] : pools_) {
    const bool is_network_attached = pool.is_settled && pool.node.empty();
    if (!pool.published && !is_network_attached && !nodes.contains(pool.node)) left.push_back(name);
  }
  std::vector<PoolName> moved;
  for (const auto& name : left) {
    begin_anew(name, {});
    if (slices_of_pool_.at(name).empty()) {
      pools_.erase(name);
    } else {
      moved.push_back(name);
    }
  }
  std::erase_if(cards_, [](const auto& entry) { return entry.second == 0; });
  std::erase_if(slices_of_pool_, [](const auto& entry) { return entry.second.empty(); });
  return moved;
}

void Inventory::count(const std::string& driver, const Pool& pool, bool add) {
  const auto change = add ? pool.cards : -pool.cards;
  if (change == 0) return;
  cards_[{driver, std::string()}] += change;
  if (!pool.node.empty()) cards_[{driver, pool.node}] += change;
}

std::int64_t Inventory::known_cards(const std::string& driver, const std::string& node) const {
  const auto found = cards_.find({driver, node});
  return found == cards_.end() ? 0 : found->second;
}

std::string Inventory::card_of(const DeviceKey& key) const {
  if (key.source == DeviceKey::Source::Plugin) return std::string(card_of_plugin_id(key.device).id);
  const auto pool = pools_.find({key.scope, key.place});
  if (pool == pools_.end()) return key.device;
  const auto device = pool->second.devices.find(key.device);
  return device == pool->second.devices.end() ? key.device : device->second.card;
}

}  // namespace dhc
