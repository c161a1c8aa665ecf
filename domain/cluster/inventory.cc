#include "domain/cluster/inventory.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/contract/our_taint.h"
#include "k8s-client/model/scheduling.h"

namespace dhc {

namespace {

// A rule whose selector has more than we can judge proves nothing.
bool selects(const k8s::DeviceTaintRule& rule, const DeviceKey& key) {
  return rule.has_selector && !rule.has_other_selectors && (!rule.driver || *rule.driver == key.scope) &&
         (!rule.pool || *rule.pool == key.place) && (!rule.device || *rule.device == key.device);
}

/// What a list has read, after what is known of the objects that it could not read: where an object may be among both,
/// because one has no name, the list's word comes last and counts.
template <class T>
std::vector<T> beside_unreadable(const std::map<std::string, T, std::less<>>& known, std::vector<T> listed,
                                 const k8s::UnreadableNames& unreadable) {
  if (unreadable.empty()) return listed;
  std::vector<T> all;
  for (const auto& [uid, object] : known) {
    if (unreadable.contains(object.meta)) all.push_back(object);
  }
  std::ranges::move(listed, std::back_inserter(all));
  return all;
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

void Inventory::replace_slices(std::vector<k8s::ResourceSlice> slices, const k8s::UnreadableNames& unreadable) {
  slices = beside_unreadable(slices_, std::move(slices), unreadable);
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

void Inventory::index(const k8s::DeviceTaintRule& rule, bool add) {
  const auto& uid = rule.meta.uid;
  if (!rule.driver || !rule.pool || !rule.device) {
    add ? (void)wide_rules_.insert(uid) : (void)wide_rules_.erase(uid);
    return;
  }
  const auto note = [&](auto& rules, const DeviceKey& key) {
    if (add) return (void)rules[key].insert(uid);
    const auto found = rules.find(key);
    if (found == rules.end()) return;
    found->second.erase(uid);
    if (found->second.empty()) rules.erase(found);
  };
  const auto selected = DeviceKey::dra(*rule.driver, *rule.pool, *rule.device);
  note(exact_rules_, selected);
  if (bears_our_name(rule)) note(named_rules_, selected);
  if (const auto bad = same_card_as(rule)) note(card_rules_, *bad);
}

std::vector<const k8s::DeviceTaintRule*> Inventory::rules_in(const RuleIndex& index, const DeviceKey& key) const {
  std::vector<const k8s::DeviceTaintRule*> rules;
  const auto found = index.find(key);
  if (found == index.end()) return rules;
  for (const auto& uid : found->second) rules.push_back(&rules_.find(uid)->second);
  return rules;
}

void Inventory::upsert(k8s::DeviceTaintRule rule) {
  const std::string uid = rule.meta.uid;
  if (const auto named = rule_names_.find(rule.meta.name); named != rule_names_.end() && named->second != uid) {
    remove_rule(std::string(named->second));
  }
  if (const auto old = rules_.find(uid); old != rules_.end()) index(old->second, false);
  index(rule, true);
  lost_rules_.erase(rule.meta.name);
  rule_names_[rule.meta.name] = uid;
  rules_.insert_or_assign(uid, std::move(rule));
}

void Inventory::remove_rule(std::string_view uid) {
  const auto found = rules_.find(uid);
  if (found == rules_.end()) return;
  index(found->second, false);
  // A rule of the same name may have been made since: the name is then the new one's.
  const auto name = rule_names_.find(found->second.meta.name);
  if (name != rule_names_.end() && name->second == uid) rule_names_.erase(name);
  if (is_as_we_make_it(found->second)) removed_rules_.insert(found->second.meta.name);
  rules_.erase(found);
}

void Inventory::replace_rules(std::vector<k8s::DeviceTaintRule> rules, std::string api_version, bool went_back,
                              const k8s::UnreadableNames& unreadable) {
  rules = beside_unreadable(rules_, std::move(rules), unreadable);
  std::set<std::string> present;
  for (const auto& rule : rules) present.insert(rule.meta.uid);
  std::set<std::string> removed = removed_rules_;
  for (const auto& [uid, rule] : rules_) {
    if (present.contains(uid)) continue;
    if (went_back) {
      lost_rules_.insert(rule.meta.name);
    } else if (is_as_we_make_it(rule)) {
      removed.insert(rule.meta.name);
    }
  }
  rules_.clear();
  rule_names_.clear();
  exact_rules_.clear();
  card_rules_.clear();
  named_rules_.clear();
  wide_rules_.clear();
  for (auto& rule : rules) upsert(std::move(rule));
  if (!api_version.empty()) removed_rules_ = std::move(removed);
  rules_api_version_ = std::move(api_version);
}

const k8s::DeviceTaintRule* Inventory::rule_named(std::string_view name) const {
  const auto uid = rule_names_.find(name);
  const auto found = uid == rule_names_.end() ? rules_.end() : rules_.find(uid->second);
  return found == rules_.end() ? nullptr : &found->second;
}

const k8s::DeviceTaintRule* Inventory::rule_named_for(const DeviceKey& key) const {
  if (rules_.empty()) return nullptr;
  const auto* rule = rule_named(rule_name(key));
  return rule != nullptr ? rule : rule_named(old_rule_name(key));
}

std::string Inventory::rule_name_for(const DeviceKey& key) const {
  const auto* rule = rule_named_for(key);
  return rule != nullptr ? rule->meta.name.str() : rule_name(key);
}

std::optional<std::pair<std::string, std::string>> Inventory::pool_of_slice(std::string_view uid) const {
  const auto found = slices_.find(uid);
  if (found == slices_.end()) return std::nullopt;
  return std::pair(found->second.driver, found->second.pool);
}

const k8s::ResourceSlice* Inventory::slice_with(std::string_view uid) const {
  const auto found = slices_.find(uid);
  return found == slices_.end() ? nullptr : &found->second;
}

const k8s::ResourceSlice* Inventory::slice_of(const DeviceKey& key) const {
  if (published(key) == nullptr) return nullptr;
  const PoolName name(key.scope, key.place);
  const k8s::ResourceSlice* found = nullptr;
  for (const auto* slice : slices_that_count(name, pools_.at(name))) {
    if (std::ranges::find(slice->devices, key.device, &k8s::SliceDevice::name) != slice->devices.end()) found = slice;
  }
  return found;
}

const PublishedDevice* Inventory::published(const DeviceKey& key) const {
  if (key.source != DeviceKey::Source::Dra) return nullptr;
  const auto pool = pools_.find({key.scope, key.place});
  if (pool == pools_.end() || !pool->second.published) return nullptr;
  const auto device = pool->second.devices.find(key.device);
  return device == pool->second.devices.end() ? nullptr : &device->second;
}

std::optional<bool> Inventory::tainted_by_driver(const DeviceKey& key) const {
  const auto* device = published(key);
  if (device == nullptr) return std::nullopt;
  return std::ranges::any_of(device->taints, k8s::keeps_pods_off);
}

bool Inventory::is_contested(const DeviceKey& key) const {
  const auto pool = pools_.find({key.scope, key.place});
  return key.source == DeviceKey::Source::Dra && pool != pools_.end() && pool->second.contested;
}

bool Inventory::has_taint(const DeviceKey& device, std::string_view taint_key) const {
  const auto* found = published(device);
  return found != nullptr && std::ranges::find(found->taints, taint_key, &k8s::Taint::key) != found->taints.end();
}

std::optional<std::string> Inventory::unschedulable_because(const DeviceKey& key, std::string_view ignored,
                                                            const std::vector<k8s::Toleration>& tolerations) const {
  const auto holds = [&](const k8s::Taint& taint) {
    return k8s::keeps_pods_off(taint) && !k8s::tolerates(tolerations, taint);
  };
  if (const auto* device = published(key)) {
    const auto taint = std::ranges::find_if(device->taints, holds);
    if (taint != device->taints.end()) return "the driver's taint " + to_string(*taint);
  }
  if (key.source != DeviceKey::Source::Dra) return std::nullopt;
  const auto judge = [&](const std::string& uid) -> std::optional<std::string> {
    const auto& rule = rules_.find(uid)->second;
    // Who asks for a taint of ours asks for one beside those for the card's other devices.
    if (!ignored.empty() && (rule.meta.name == ignored || same_card_as(rule))) return std::nullopt;
    if (!holds(rule.taint) || !selects(rule, key)) return std::nullopt;
    return "DeviceTaintRule " + rule.meta.name + " with taint " + to_string(rule.taint);
  };
  if (const auto exact = exact_rules_.find(key); exact != exact_rules_.end()) {
    for (const auto& uid : exact->second) {
      if (auto why = judge(uid)) return why;
    }
  }
  for (const auto& uid : wide_rules_) {
    if (auto why = judge(uid)) return why;
  }
  return std::nullopt;
}

}  // namespace dhc
