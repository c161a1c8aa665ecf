#include "domain/cluster/held_cards.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "domain/cluster/running_images.h"
#include "domain/cluster/world.h"

namespace dhc {

namespace {

DeviceKey place_of_key(DeviceKey key) {
  key.device.clear();
  return key;
}

}  // namespace

std::vector<DeviceKey> HeldCards::Place::keys() const {
  std::vector<DeviceKey> keys;
  keys.reserve(devices.size() + 1);
  if (has_nameless) keys.push_back(at);
  for (const auto& device : devices) keys.emplace_back(at).device = device;
  return keys;
}

void HeldCards::add(const DeviceKey& key) {
  auto at = place_of_key(key);
  auto& place = places_[at];
  place.at = at;
  const bool is_new = key.device.empty() ? !std::exchange(place.has_nameless, true) : place.devices.insert(key.device);
  if (is_new) stale_.insert(std::move(at));
}

void HeldCards::remove(const DeviceKey& key) {
  auto at = place_of_key(key);
  const auto found = places_.find(at);
  if (found == places_.end()) return;
  auto& place = found->second;
  const bool is_gone =
      key.device.empty() ? std::exchange(place.has_nameless, false) : place.devices.erase(key.device) > 0;
  if (is_gone) stale_.insert(std::move(at));
}

void HeldCards::note_pool(const SharedText& driver, const SharedText& pool) {
  auto at = DeviceKey::dra(driver, pool, {});
  if (places_.contains(at)) stale_.insert(std::move(at));
}

void HeldCards::note_node(const SharedText& node) {
  for (auto at = units_.lower_bound({node, {}}); at != units_.end() && at->first.first == node; ++at) {
    stale_.insert(at->second.begin(), at->second.end());
  }
}

std::int64_t HeldCards::Place::count_of(std::string_view image) const {
  const auto found = std::ranges::find_if(images, [&](const auto& entry) { return *entry.first == image; });
  return found == images.end() ? 0 : found->second;
}

bool HeldCards::Place::has_release(std::string_view release) const {
  return std::ranges::any_of(releases, [&](const auto& entry) { return *entry == release; });
}

void HeldCards::note_holder(const DeviceKey& key) {
  auto at = place_of_key(key);
  if (places_.contains(at)) stale_.insert(std::move(at));
}

template <class Counts>
void HeldCards::change(Counts& counts, const typename Counts::key_type& what, std::int64_t cards) {
  const auto at = counts.try_emplace(what, 0).first;
  at->second += cards;
  if (at->second == 0) counts.erase(at);
}

void HeldCards::count_in(const Place& place) {
  auto& scope = scopes_[place.at.scope];
  scope.cards += place.cards;
  change(scope.by_start, place.driver_began, place.cards);
  for (const auto& [name, cards] : place.images) {
    auto& image = scope.images[*name];
    image.cards += cards;
    change(image.by_start, place.driver_began, cards);
    for (const auto& release : place.releases) change(image.by_release, *release, cards);
    image.places.insert(place.at);
  }
  for (const auto& name : place.releases) scope.releases[*name].cards += place.cards;
  units_[{place.unit, place.at.scope}].insert(place.at);
}

void HeldCards::count_out(const Place& place) {
  const auto unit = units_.find({place.unit, place.at.scope});
  if (unit == units_.end() || unit->second.erase(place.at) == 0) return;  // it was not counted yet
  if (unit->second.empty()) units_.erase(unit);
  const auto scope = scopes_.find(place.at.scope);
  scope->second.cards -= place.cards;
  change(scope->second.by_start, place.driver_began, -place.cards);
  for (const auto& [name, cards] : place.images) {
    const auto image = scope->second.images.find(*name);
    image->second.cards -= cards;
    change(image->second.by_start, place.driver_began, -cards);
    for (const auto& release : place.releases) change(image->second.by_release, *release, -cards);
    image->second.places.erase(place.at);
    if (image->second.cards == 0) scope->second.images.erase(image);
  }
  for (const auto& name : place.releases) {
    const auto release = scope->second.releases.find(*name);
    release->second.cards -= place.cards;
    if (release->second.cards == 0) scope->second.releases.erase(release);
  }
  if (scope->second.cards == 0) scopes_.erase(scope);
}

/// A name is kept once for all places.
void HeldCards::count_images(Place& place, const World& world) {
  std::map<std::string, std::set<std::string>> cards;
  for (const auto& key : place.keys()) {
    for (auto& name : images_on(key, world)) cards[std::move(name)].insert(world.card_of(key).device);
  }
  place.images.clear();
  place.images.reserve(cards.size());
  for (const auto& [name, held] : cards) {
    auto& image = scopes_[place.at.scope].images[name];
    if (!image.name.has_value()) image.name = k8s::SharedEntry<std::string>(name);
    place.images.emplace_back(image.name, std::ssize(held));
  }
}

/// Likewise.
void HeldCards::name_releases(Place& place, const DeviceKey& key, const World& world) {
  place.releases.clear();
  for (const auto& [name, made] : world.releases_of(key)) {
    auto& release = scopes_[place.at.scope].releases[name];
    if (!release.name.has_value()) release.name = k8s::SharedEntry<std::string>(name);
    place.releases.push_back(release.name);
  }
}

void HeldCards::settle(const World& world) {
  for (const auto& at : std::exchange(stale_, {})) {
    const auto found = places_.find(at);
    if (found == places_.end()) continue;
    auto& place = found->second;
    count_out(place);
    const auto keys = place.keys();
    if (keys.empty()) {
      places_.erase(found);
      continue;
    }
    std::set<std::string> cards;
    for (const auto& key : keys) cards.insert(world.card_of(key).device);
    place.cards = std::ssize(cards);
    place.unit = world.node_of(keys.front());
    if (place.unit.empty()) place.unit = at.place;
    const auto reporter = world.reporter_of(keys.front());
    place.driver_began = reporter ? std::optional(reporter->began) : std::nullopt;
    count_images(place, world);
    name_releases(place, keys.front(), world);
    count_in(place);
  }
}

const HeldCards::Place* HeldCards::place_of(const DeviceKey& key) const {
  const auto found = places_.find(place_of_key(key));
  return found == places_.end() ? nullptr : &found->second;
}

std::vector<const HeldCards::Place*> HeldCards::places_beside(const DeviceKey& key) const {
  const auto* here = place_of(key);
  return here == nullptr ? std::vector<const Place*>() : places_in(here->unit, key.scope);
}

std::vector<const HeldCards::Place*> HeldCards::places_in(std::string_view unit, std::string_view scope) const {
  std::vector<const Place*> places;
  const auto found = units_.find({SharedText(unit), SharedText(scope)});
  if (found == units_.end()) return places;
  for (const auto& at : found->second) places.push_back(&places_.at(at));
  return places;
}

std::int64_t HeldCards::count(std::string_view scope) const {
  const auto found = scopes_.find(scope);
  return found == scopes_.end() ? 0 : found->second.cards;
}

std::int64_t HeldCards::count_since(const ByStart& counts, WallTime then) {
  std::int64_t cards = 0;
  if (!counts.empty() && !counts.begin()->first) cards = counts.begin()->second;
  for (auto at = counts.lower_bound(then); at != counts.end(); ++at) cards += at->second;
  return cards;
}

std::int64_t HeldCards::count_since(std::string_view scope, WallTime then) const {
  const auto found = scopes_.find(scope);
  return found == scopes_.end() ? 0 : count_since(found->second.by_start, then);
}

const HeldCards::Image* HeldCards::find(std::string_view scope, std::string_view image) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return nullptr;
  const auto named = found->second.images.find(image);
  return named == found->second.images.end() ? nullptr : &named->second;
}

std::int64_t HeldCards::count_of(std::string_view scope, std::string_view image) const {
  const auto* found = find(scope, image);
  return found == nullptr ? 0 : found->cards;
}

std::int64_t HeldCards::count_of_since(std::string_view scope, std::string_view image, WallTime then) const {
  const auto* found = find(scope, image);
  return found == nullptr ? 0 : count_since(found->by_start, then);
}

std::int64_t HeldCards::count_at(std::string_view scope, std::string_view release) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return 0;
  const auto named = found->second.releases.find(release);
  return named == found->second.releases.end() ? 0 : named->second.cards;
}

std::int64_t HeldCards::count_of_at(std::string_view scope, std::string_view image, std::string_view release) const {
  const auto* found = find(scope, image);
  if (found == nullptr) return 0;
  const auto named = found->by_release.find(release);
  return named == found->by_release.end() ? 0 : named->second;
}

}  // namespace dhc
