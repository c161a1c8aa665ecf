#include "domain/cluster/held_cards.h"

#include <iterator>
#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

namespace {

DeviceKey place_of_key(DeviceKey key) {
  key.device.clear();
  return key;
}

}  // namespace

DeviceKey HeldCards::Place::key_of(const std::string& device) const {
  auto key = at;
  key.device = device;
  return key;
}

void HeldCards::add(const DeviceKey& key) {
  auto at = place_of_key(key);
  auto& place = places_[at];
  place.at = at;
  if (place.devices.insert(key.device).second) stale_.insert(std::move(at));
}

void HeldCards::remove(const DeviceKey& key) {
  auto at = place_of_key(key);
  const auto found = places_.find(at);
  if (found != places_.end() && found->second.devices.erase(key.device) > 0) stale_.insert(std::move(at));
}

void HeldCards::note_pool(const std::string& driver, const std::string& pool) {
  auto at = DeviceKey::dra(driver, pool, {});
  if (places_.contains(at)) stale_.insert(std::move(at));
}

void HeldCards::note_node(const std::string& node) {
  for (auto at = units_.lower_bound({node, ""}); at != units_.end() && at->first.first == node; ++at) {
    stale_.insert(at->second.begin(), at->second.end());
  }
}

void HeldCards::count_in(const Place& place) {
  auto& scope = scopes_[place.at.scope];
  scope.cards += place.cards;
  (place.driver_began ? scope.by_start[*place.driver_began] : scope.undated) += place.cards;
  units_[{place.unit, place.at.scope}].insert(place.at);
}

void HeldCards::count_out(const Place& place) {
  const auto unit = units_.find({place.unit, place.at.scope});
  if (unit == units_.end() || unit->second.erase(place.at) == 0) return;  // it was not counted yet
  if (unit->second.empty()) units_.erase(unit);
  const auto scope = scopes_.find(place.at.scope);
  scope->second.cards -= place.cards;
  if (!place.driver_began) {
    scope->second.undated -= place.cards;
  } else if (const auto began = scope->second.by_start.find(*place.driver_began); (began->second -= place.cards) == 0) {
    scope->second.by_start.erase(began);
  }
  if (scope->second.cards == 0) scopes_.erase(scope);
}

void HeldCards::settle(const World& world) {
  for (const auto& at : std::exchange(stale_, {})) {
    const auto found = places_.find(at);
    if (found == places_.end()) continue;
    auto& place = found->second;
    count_out(place);
    if (place.devices.empty()) {
      places_.erase(found);
      continue;
    }
    std::set<std::string> cards;
    for (const auto& device : place.devices) cards.insert(world.card_of(place.key_of(device)).device);
    place.cards = std::ssize(cards);
    const auto first = place.key_of(*place.devices.begin());
    place.unit = world.node_of(first);
    if (place.unit.empty()) place.unit = at.place;
    const auto reporter = world.reporter_of(first);
    place.driver_began = reporter ? std::optional(reporter->began) : std::nullopt;
    count_in(place);
  }
}

const HeldCards::Place* HeldCards::place_of(const DeviceKey& key) const {
  const auto found = places_.find(place_of_key(key));
  return found == places_.end() ? nullptr : &found->second;
}

std::vector<const HeldCards::Place*> HeldCards::places_beside(const DeviceKey& key) const {
  std::vector<const Place*> beside;
  const auto* here = place_of(key);
  const auto unit = here == nullptr ? units_.end() : units_.find({here->unit, key.scope});
  if (unit == units_.end()) return beside;
  for (const auto& at : unit->second) beside.push_back(&places_.at(at));
  return beside;
}

std::int64_t HeldCards::count(std::string_view scope) const {
  const auto found = scopes_.find(scope);
  return found == scopes_.end() ? 0 : found->second.cards;
}

std::int64_t HeldCards::count_since(std::string_view scope, WallTime then) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return 0;
  auto cards = found->second.undated;
  const auto& by_start = found->second.by_start;
  for (auto at = by_start.lower_bound(then); at != by_start.end(); ++at) cards += at->second;
  return cards;
}

}  // namespace dhc
