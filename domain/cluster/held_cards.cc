#include "domain/cluster/held_cards.h"

#include <algorithm>
#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

HeldCards::PlaceName HeldCards::name_of(const DeviceKey& key) {
  return {.scope = key.scope, .place = key.place, .source = key.source};
}

void HeldCards::add(const DeviceKey& key) {
  auto name = name_of(key);
  places_[name].devices.push_back(&key);
  stale_.insert(std::move(name));
}

void HeldCards::remove(const DeviceKey& key) {
  auto name = name_of(key);
  const auto found = places_.find(name);
  if (found == places_.end()) return;
  auto& devices = found->second.devices;
  const auto at = std::ranges::find(devices, &key);
  if (at == devices.end()) return;
  *at = devices.back();
  devices.pop_back();
  stale_.insert(std::move(name));
}

void HeldCards::note_pool(const std::string& driver, const std::string& pool) {
  PlaceName name{.scope = driver, .place = pool, .source = DeviceKey::Source::Dra};
  if (places_.contains(name)) stale_.insert(std::move(name));
}

void HeldCards::note_node(const std::string& node) {
  for (auto at = units_.lower_bound({node, ""}); at != units_.end() && at->first.first == node; ++at) {
    stale_.insert(at->second.begin(), at->second.end());
  }
}

void HeldCards::count_in(const PlaceName& name, const Place& place) {
  auto& scope = scopes_[name.scope];
  scope.cards += place.cards;
  (place.driver_began ? scope.by_start[*place.driver_began] : scope.undated) += place.cards;
  units_[{place.unit, name.scope}].insert(name);
}

void HeldCards::count_out(const PlaceName& name, const Place& place) {
  const auto unit = units_.find({place.unit, name.scope});
  if (unit == units_.end() || unit->second.erase(name) == 0) return;  // it was not counted yet
  if (unit->second.empty()) units_.erase(unit);
  const auto scope = scopes_.find(name.scope);
  scope->second.cards -= place.cards;
  if (!place.driver_began) {
    scope->second.undated -= place.cards;
  } else if (const auto began = scope->second.by_start.find(*place.driver_began); (began->second -= place.cards) == 0) {
    scope->second.by_start.erase(began);
  }
  if (scope->second.cards == 0) scopes_.erase(scope);
}

void HeldCards::settle(const World& world) {
  for (const auto& name : std::exchange(stale_, {})) {
    const auto found = places_.find(name);
    if (found == places_.end()) continue;
    auto& place = found->second;
    count_out(name, place);
    if (place.devices.empty()) {
      places_.erase(found);
      continue;
    }
    std::vector<std::string_view> cards;
    for (const auto* key : place.devices) cards.push_back(world.inventory().card_of(*key));
    std::ranges::sort(cards);
    place.cards = std::ranges::unique(cards).begin() - cards.begin();
    const auto& first = *place.devices.front();
    place.unit = world.node_of(first);
    if (place.unit.empty()) place.unit = name.place;
    const auto reporter = world.reporter_of(first);
    place.driver_began = reporter ? std::optional(reporter->began) : std::nullopt;
    count_in(name, place);
  }
}

const HeldCards::Place* HeldCards::place_of(const DeviceKey& key) const {
  const auto found = places_.find(name_of(key));
  return found == places_.end() ? nullptr : &found->second;
}

std::vector<const HeldCards::Place*> HeldCards::places_beside(const DeviceKey& key) const {
  std::vector<const Place*> beside;
  const auto* here = place_of(key);
  const auto unit = here == nullptr ? units_.end() : units_.find({here->unit, key.scope});
  if (unit == units_.end()) return beside;
  for (const auto& name : unit->second) beside.push_back(&places_.at(name));
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
