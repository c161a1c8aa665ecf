// The part of Inventory that says which physical device sits in a place.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "domain/cluster/card_names.h"
#include "domain/cluster/inventory.h"

namespace dhc {

namespace {

constexpr std::size_t kMostMarks = 16;

Listing listing_of(const Pool& pool) { return {.devices = pool.devices, .shared = pool.shared_identities}; }

/// An attribute that the device does not have asks for nothing.
std::string_view attribute_for(const Pool& pool, const DeviceKey& key, const PublishedDevice& device,
                               const KnownCard& known) {
  const std::string_view attribute = known.identity.attribute;
  if (known.identity.value.empty() || attribute.empty()) return known.wanted;
  const auto listing = listing_of(pool);
  if (!known.wanted.empty()) {
    const bool has_wanted = identity_in(listing, key.device, device, known.wanted).has_value();
    return has_wanted ? std::string_view(known.wanted) : attribute;
  }
  // Known by its own name, which it gets anew each time that it is made.
  const auto usual = identity_in(listing, key.device, device, {});
  return usual && names_parent(usual->attribute) ? std::string_view() : attribute;
}

}  // namespace

std::optional<DeviceIdentity> Inventory::identity_of(const DeviceKey& key, std::string_view attribute) const {
  const auto* device = published(key);
  if (device == nullptr) return std::nullopt;
  return identity_in(listing_of(pools_.find({key.scope, key.place})->second), key.device, *device, attribute);
}

std::optional<DeviceIdentity> Inventory::identity_now(const DeviceKey& key, const KnownCard& known) const {
  const auto* device = published(key);
  if (device == nullptr) return std::nullopt;
  const auto& pool = pools_.find({key.scope, key.place})->second;
  return identity_in(listing_of(pool), key.device, *device, attribute_for(pool, key, *device, known));
}

bool Inventory::is_other_card(const DeviceKey& key, const KnownCard& known) const {
  const auto& [attribute, value] = known.identity;
  if (value.empty() || attribute.empty()) return false;
  const auto now = identity_now(key, known);
  if (!now || now->attribute != attribute || now->value == value) return false;
  if (names_parent(attribute) && is_parent_of(value, now->value)) return false;
  const auto& pool = pools_.find({key.scope, key.place})->second;
  if (!pool.is_whole) return false;
  std::set<std::string> before(known.beside.begin(), known.beside.end());
  before.insert(mark_of(card_name_of(known.identity, key.device)));
  return !are_all_renamed(before, marks_of(listing_of(pool), attribute));
}

std::optional<CardMarks> Inventory::marks_beside(const DeviceKey& key, std::string_view attribute) const {
  const auto* device = published(key);
  const auto pool = pools_.find({key.scope, key.place});
  if (device == nullptr || !pool->second.is_whole) return std::nullopt;
  const auto all = marks_of(listing_of(pool->second), attribute, device->card);
  CardMarks marks(all.begin(), all.end());
  if (marks.size() > kMostMarks) marks.resize(kMostMarks);
  return marks;
}

/// By the attribute that has named the one before: another attribute says nothing about the card.
void Inventory::note_replaced(const PoolName& name, const Pool& before, const Pool& after) {
  if (!after.is_whole) return;
  const auto& devices = before.is_whole ? before.devices : before.last_whole;
  const auto shared = before.is_whole ? before.shared_identities : shared_identities(devices);
  const Listing was{.devices = devices, .shared = shared};
  const auto is = listing_of(after);
  std::optional<bool> renamed;
  for (const auto& [device, published] : devices) {
    const auto now_there = after.devices.find(device);
    if (now_there == after.devices.end() || now_there->second.attributes == published.attributes) continue;
    const auto known = identity_in(was, device, published, {});
    const auto now = known ? identity_in(is, device, now_there->second, known->attribute) : std::nullopt;
    if (!now || now->value == known->value) continue;
    if (!renamed) renamed = are_all_renamed(marks_of(was, {}), marks_of(is, {}));
    if (*renamed) return;
    replaced_.insert_or_assign(DeviceKey::dra(name.first, name.second, device), known->attribute);
  }
}

}  // namespace dhc
