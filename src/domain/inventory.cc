#include "domain/inventory.h"

#include <algorithm>
#include <utility>

namespace dhc {

namespace {

bool keeps_off(const k8s::Taint& taint) { return taint.effect == "NoSchedule" || taint.effect == "NoExecute"; }

bool selects(const k8s::DeviceTaintRule& rule, const DeviceKey& key) {
  return rule.has_selector && (!rule.driver || *rule.driver == key.scope) && (!rule.pool || *rule.pool == key.place) &&
         (!rule.device || *rule.device == key.device);
}

std::string words(const k8s::Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

}  // namespace

void Inventory::upsert(k8s::ResourceSlice slice) {
  remove_slice(slice.meta.uid);
  const std::string uid = slice.meta.uid;
  const std::string driver = slice.driver;
  const std::string pool = slice.pool;
  slices_.insert_or_assign(uid, std::move(slice));
  slices_of_pool_[{driver, pool}].insert(uid);
  rebuild(driver, pool);
}

void Inventory::remove_slice(std::string_view uid) {
  const auto found = slices_.find(uid);
  if (found == slices_.end()) return;
  const auto pool = std::pair(found->second.driver, found->second.pool);
  slices_of_pool_[pool].erase(found->first);
  slices_.erase(found);
  rebuild(pool.first, pool.second);
}

void Inventory::replace_slices(std::vector<k8s::ResourceSlice> slices) {
  slices_.clear();
  slices_of_pool_.clear();
  for (auto& slice : slices) {
    slices_of_pool_[{slice.driver, slice.pool}].insert(slice.meta.uid);
    const std::string uid = slice.meta.uid;
    slices_.insert_or_assign(uid, std::move(slice));
  }
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto& [key, pool] : pools_) keys.push_back(key);
  for (const auto& [key, uids] : slices_of_pool_) keys.push_back(key);
  for (const auto& [driver, pool] : keys) rebuild(driver, pool);
}

void Inventory::upsert(k8s::DeviceTaintRule rule) {
  const std::string uid = rule.meta.uid;
  rules_.insert_or_assign(uid, std::move(rule));
}

void Inventory::remove_rule(std::string_view uid) {
  if (const auto found = rules_.find(uid); found != rules_.end()) rules_.erase(found);
}

void Inventory::replace_rules(std::vector<k8s::DeviceTaintRule> rules) {
  rules_.clear();
  for (auto& rule : rules) upsert(std::move(rule));
}

void Inventory::forget_nodes_but(const std::map<std::string, k8s::Node>& nodes) {
  std::erase_if(pools_, [&](const auto& entry) {
    return !entry.second.published && !entry.second.node.empty() && !nodes.contains(entry.second.node);
  });
  std::erase_if(slices_of_pool_, [](const auto& entry) { return entry.second.empty(); });
}

void Inventory::rebuild(const std::string& driver, const std::string& pool) {
  auto& known = pools_[{driver, pool}];
  const auto& uids = slices_of_pool_[{driver, pool}];
  known.published = !uids.empty();
  if (uids.empty()) {
    for (auto& [name, taints] : known.devices) taints.clear();  // a taint that nobody publishes holds nobody off
    return;
  }
  std::int64_t newest = 0;
  for (const auto& uid : uids) newest = std::max(newest, slices_.find(uid)->second.generation);
  known.devices.clear();
  known.node.clear();
  for (const auto& uid : uids) {
    const auto& slice = slices_.find(uid)->second;
    if (slice.generation != newest) continue;
    if (!slice.node_name.empty()) known.node = slice.node_name;
    for (const auto& device : slice.devices) known.devices[device.name] = device.taints;
  }
}

std::optional<std::string> Inventory::unschedulable_because(const DeviceKey& key) const {
  if (key.source != DeviceKey::Source::Dra) return std::nullopt;
  if (const auto pool = pools_.find({key.scope, key.place}); pool != pools_.end()) {
    if (const auto device = pool->second.devices.find(key.device); device != pool->second.devices.end()) {
      const auto taint = std::ranges::find_if(device->second, keeps_off);
      if (taint != device->second.end()) return "the driver's taint " + words(*taint);
    }
  }
  for (const auto& [uid, rule] : rules_) {
    if (keeps_off(rule.taint) && selects(rule, key))
      return "DeviceTaintRule " + rule.meta.name + " with taint " + words(rule.taint);
  }
  return std::nullopt;
}

}  // namespace dhc
