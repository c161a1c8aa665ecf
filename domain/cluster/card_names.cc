#include "domain/cluster/card_names.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/hash.h"
#include "domain/cluster/physical_cards.h"

namespace dhc {

namespace {

/// The last part of the names of attributes that usually name a physical device.
constexpr std::array<std::string_view, 3> kIdentityWords = {"uuid", "serialnumber", "serial"};

bool is_well_known(std::string_view attribute) {
  return std::ranges::find(kIdentityWords, attribute_word(attribute)) != kIdentityWords.end();
}

bool names_one(const Listing& listing, std::string_view value) {
  return !value.empty() && !listing.shared.contains(value);
}

/// What several cards carry in this attribute, of which no listing knows unless it is a well-known one.
std::set<std::string_view> shared_in(const Listing& listing, std::string_view attribute) {
  std::set<std::string_view> shared;
  if (attribute.empty() || is_well_known(attribute)) return shared;
  std::map<std::string_view, std::string_view> cards;  // by value
  for (const auto& [name, device] : listing.devices) {
    const auto value = k8s::find(device.attributes, attribute);
    if (value && cards.try_emplace(*value, device.card).first->second != device.card) shared.insert(*value);
  }
  return shared;
}

/// What the attribute that is asked for says of the device, if it names one card.
std::optional<std::string> asked_name(const Listing& listing, const std::set<std::string_view>& shared,
                                      const PublishedDevice& device, std::string_view attribute) {
  const auto value = k8s::find(device.attributes, attribute);
  if (!value || !names_one(listing, *value) || shared.contains(*value)) return std::nullopt;
  return std::string(*value);
}

/// The first attribute of this word that names one device.
std::optional<DeviceIdentity> named_by(const Listing& listing, const PublishedDevice& device, std::string_view word) {
  for (const auto& [name, value] : device.attributes) {
    if (attribute_word(name) == word && names_one(listing, value))
      return DeviceIdentity{.attribute = name, .value = value};
  }
  return std::nullopt;
}

std::optional<DeviceIdentity> well_known(const Listing& listing, const PublishedDevice& device) {
  for (const std::string_view word : kIdentityWords) {
    if (auto found = named_by(listing, device, word)) return found;
  }
  return std::nullopt;
}

std::string partition_of(std::string_view card, std::string_view name) {
  return std::string(card).append("/").append(name);
}

std::optional<std::string> name_of_card(const Listing& listing, const std::set<std::string_view>& shared,
                                        const PublishedDevice& device, std::string_view attribute) {
  if (const auto parent = named_by(listing, device, "parentuuid")) return parent->value;
  if (auto name = asked_name(listing, shared, device, attribute)) return name;
  const auto known = well_known(listing, device);
  return known ? std::optional(known->value) : std::nullopt;
}

}  // namespace

std::set<std::string, std::less<>> shared_identities(const std::map<std::string, PublishedDevice>& devices) {
  std::map<std::string_view, std::string_view> cards;  // by value
  std::set<std::string, std::less<>> shared;
  for (const auto& [name, device] : devices) {
    for (const auto& [attribute, value] : device.attributes) {
      if (value.empty() || !is_well_known(attribute)) continue;
      if (cards.try_emplace(value, device.card).first->second != device.card) shared.emplace(value);
    }
  }
  return shared;
}

bool names_parent(std::string_view attribute) { return attribute_word(attribute) == "parentuuid"; }

bool is_parent_of(std::string_view parent, std::string_view identity) {
  return identity.size() > parent.size() && identity.starts_with(parent) && identity[parent.size()] == '/';
}

std::optional<DeviceIdentity> identity_in(const Listing& listing, std::string_view name, const PublishedDevice& device,
                                          std::string_view attribute) {
  std::optional<DeviceIdentity> found;
  if (attribute.empty()) {
    found = named_by(listing, device, "parentuuid");
    if (!found) found = well_known(listing, device);
  } else if (auto value = asked_name(listing, shared_in(listing, attribute), device, attribute)) {
    found = DeviceIdentity{.attribute = std::string(attribute), .value = *std::move(value)};
  }
  if (found && names_parent(found->attribute)) found->value = partition_of(found->value, name);
  return found;
}

std::string_view card_name_of(const DeviceIdentity& identity, std::string_view device) {
  std::string_view card = identity.value;
  if (names_parent(identity.attribute) && card.size() > device.size() + 1 && card.ends_with(device) &&
      card[card.size() - device.size() - 1] == '/')
    card.remove_suffix(device.size() + 1);
  return card;
}

std::set<std::string> marks_of(const Listing& listing, std::string_view attribute, std::string_view without) {
  std::set<std::string> marks;
  const auto shared = shared_in(listing, attribute);
  for (const auto& [name, device] : listing.devices) {
    if (!without.empty() && device.card == without) continue;
    if (const auto card = name_of_card(listing, shared, device, attribute)) marks.insert(mark_of(*card));
  }
  return marks;
}

std::string mark_of(std::string_view card_name) {
  const auto hash = stable_hash(card_name);
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash ^ (hash >> 32U)));
}

bool are_all_renamed(const std::set<std::string>& before, const std::set<std::string>& now) {
  return before.size() > 1 && std::ranges::none_of(before, [&](const auto& mark) { return now.contains(mark); });
}

}  // namespace dhc
