// The part of World that sees when another physical device sits in a place, and lays on it nothing that was said of the
// one before. Pods and slices arrive on watches of their own, which have no common order.
#include <set>
#include <string>
#include <vector>

#include "domain/cluster/world.h"

namespace dhc {

/// The incident is the card's that sat in the place before, until whoever remembers it has ended it.
bool World::is_of_other_card(const DeviceKey& key, const OpenIncident& incident) const {
  return inventory_.is_other_card(key, incident.card);
}

/// Where an incident is on, the attribute that names its card decides: a driver may make another one anew at each
/// start.
void World::note_other_cards(const std::map<DeviceKey, std::string>& replaced, const Now& now) {
  for (const auto& [key, attribute] : replaced) {
    const auto incident = incidents_.find(key);
    const bool is_named = incident != incidents_.end() && !incident->second.card.identity.attribute.empty();
    if (is_named && incident->second.card.identity.attribute != attribute) continue;
    note_other_card(key, now);
  }
}

void World::note_other_card(const DeviceKey& key, const Now& now) {
  driver_taints_.begin_anew(key);
  if (tracker_.find(key) == nullptr) return;
  tracker_.begin_anew(key);
  new_cards_.insert_or_assign(key, now.mono);
  dirty_devices_.insert(key);
  touched_.device(key);
}

/// A card that was replaced while nobody watched, or that only a policy's attribute names, is known by its incident.
void World::look_at_card(const DeviceKey& key, const Now& now) {
  const auto incident = incidents_.find(key);
  if (incident != incidents_.end() && is_of_other_card(key, incident->second) && !new_cards_.contains(key)) {
    note_other_card(key, now);
  }
  const auto since = new_cards_.find(key);
  if (since == new_cards_.end()) return;
  // What has not been heard of since may have changed.
  if (tracker_.find(key) == nullptr || is_heard_since({k8s::Kind::Pod}, since->second + kOwnWord))
    new_cards_.erase(since);
}

/// Their cards may have been replaced.
void World::look_again_at_incidents_of(const Inventory::PoolName& pool) {
  for (auto at = incidents_.lower_bound(DeviceKey::dra(pool.first, pool.second, {})); at != incidents_.end(); ++at) {
    const auto& key = at->first;
    if (key.source != DeviceKey::Source::Dra || key.scope != pool.first || key.place != pool.second) return;
    dirty_devices_.insert(key);
  }
}

/// A pod that held the device before: the kubelet has its driver's last word on the old card for a while, and our view
/// of it may be older still.
bool World::may_be_of_card_before(const DeviceKey& key, const HeldDevice& held_device) const {
  const auto since = new_cards_.find(key);
  return since != new_cards_.end() && held_device.seen_at && held_device.seen_at->mono <= since->second;
}

/// Whoever is on the card when it is lost is no replacement, whichever of its devices he has.
std::vector<std::string> World::holders_of_card(const DeviceKey& key) const {
  std::set<std::string> holders;
  if (const auto* state = tracker_.find(key)) holders.insert(state->holders.begin(), state->holders.end());
  if (key.source == DeviceKey::Source::Plugin) {
    for (const auto& uid : pods_on(key.place)) {
      for (const auto& held_device : pods_.find(uid)->second.held_devices) {
        const auto& held = held_device.key;
        const bool is_here = held.source == key.source && held.place == key.place && held.scope == key.scope;
        if (is_here && card_by_name(held) == card_by_name(key)) holders.insert(uid);
      }
    }
  }
  return {holders.begin(), holders.end()};
}

}  // namespace dhc
