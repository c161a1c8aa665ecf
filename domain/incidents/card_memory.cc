#include "domain/incidents/card_memory.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "domain/cluster/card_names.h"
#include "domain/history/card_penalty.h"

namespace dhc {

namespace {

constexpr double kLeastShown = 0.005;

/// The card of a device by what is remembered of it, and whether it is a partition of that.
struct NamedCard {
  std::string_view name;
  bool is_parent = false;
};

NamedCard named_card(const DeviceRecord& record) {
  const auto& card = record.card;
  if (!names_parent(card.attribute)) return {.name = card.value};
  // Of an earlier version: the card alone.
  const std::string_view value = card.value;
  const std::string_view device = record.key.device;
  const bool has_name =
      value.size() > device.size() + 1 && value.ends_with(device) && value[value.size() - device.size() - 1] == '/';
  return {.name = has_name ? value.substr(0, value.size() - device.size() - 1) : value, .is_parent = true};
}

/// A card is its own name's, or its partitions'; two that are no partitions and have one name are no card of many.
bool are_of_one(const NamedCard& a, const NamedCard& b) {
  return !a.name.empty() && a.name == b.name && (a.is_parent || b.is_parent);
}

/// Whether what is remembered of the place is still of what sits there.
bool is_there(const DeviceRecord& record, const World& world, const Policy& policy) {
  return !is_on_other_host(record, world).value_or(false) &&
         !world.inventory().is_other_card(record.key, known_card(record, &policy));
}

std::vector<const DeviceRecord*> partitions_beside(const IncidentStore& incidents, const DeviceRecord& record,
                                                   const World& world, const Policy& policy) {
  std::vector<const DeviceRecord*> found;
  const auto& key = record.key;
  const auto others = world.inventory().others_on_card(key);
  const auto card = named_card(record);
  if (others.empty() && card.name.empty()) return found;
  const auto& records = incidents.records();
  for (auto at = records.lower_bound(DeviceKey::dra(key.scope, key.place, {})); at != records.end(); ++at) {
    const auto& [other, known] = *at;
    if (other.source != key.source || other.scope != key.scope || other.place != key.place) break;
    if (other == key) continue;
    const bool is_on_card = std::ranges::binary_search(others, other) || are_of_one(card, named_card(known));
    if (is_on_card && is_there(known, world, policy)) found.push_back(&known);
  }
  if (card.name.empty()) return found;
  const auto first = identity_key(key, std::string(card.name));
  const auto& departed = incidents.departed();
  for (auto at = departed.lower_bound(first); at != departed.end() && at->first.starts_with(first); ++at) {
    if (are_of_one(card, named_card(at->second))) found.push_back(&at->second);
  }
  return found;
}

}  // namespace

std::optional<bool> is_on_other_host(const DeviceRecord& record, const World& world) {
  const bool is_dra = record.key.source == DeviceKey::Source::Dra;
  if (!is_dra && names_hardware(record.key)) return std::nullopt;
  const auto* node = world.node_under(record.key);
  const auto& card = record.card;
  if (node == nullptr || node->meta.uid == card.host_uid) return std::nullopt;
  // Undecided while its driver does not publish it.
  if (is_dra && !card.host_uid.empty() && world.inventory().published(record.key) == nullptr) return std::nullopt;
  if (card.host_uid.empty() || names_hardware(record.key)) return false;
  if (!is_dra || card.value.empty()) return true;
  const auto identity = world.inventory().identity_of(record.key, card.attribute);
  return !identity || identity->value != card.value;
}

std::vector<const DeviceRecord*> others_of_card(const IncidentStore& incidents, const DeviceRecord& record,
                                                const World& world, const Policy& policy) {
  if (record.key.source == DeviceKey::Source::Dra) return partitions_beside(incidents, record, world, policy);
  if (record.key.source != DeviceKey::Source::Plugin) return {};
  auto found = incidents.replicas_of(record.key);
  std::erase_if(found, [&](const DeviceRecord* other) { return !is_there(*other, world, policy); });
  return found;
}

std::vector<const DeviceHistory*> pasts_of(const std::vector<const DeviceRecord*>& records) {
  std::vector<const DeviceHistory*> pasts;
  for (const auto* record : records) pasts.push_back(&record->past);
  return pasts;
}

PenaltyThen penalty_of_card(const IncidentStore& incidents, const DeviceRecord& record, const World& world,
                            const Policy& policy) {
  PenaltyThen then{.penalty = record.past.penalty, .at = record.past.penalty_at};
  const auto others = pasts_of(others_of_card(incidents, record, world, policy));
  if (others.empty()) return then;
  for (const auto* other : others) {
    if (other->penalty > 0) then.at = std::max(then.at, other->penalty_at);
  }
  const auto* rules = rules_of(record, policy);
  then.penalty = card_penalty(record.past, others, rules == nullptr ? RecoverRules() : *rules, then.at);
  return then;
}

std::string with_card_words(const IncidentStore& incidents, const DeviceRecord& record, const World& world,
                            const Policy& policy, WallTime now) {
  const auto others = pasts_of(others_of_card(incidents, record, world, policy));
  const auto* rules = rules_of(record, policy);
  if (others.empty() || rules == nullptr) return {};
  const auto sum = card_penalty(record.past, others, *rules, now);
  if (sum - penalty_of(record.past, *rules, now) < kLeastShown) return {};
  return fmt::format(" ({:.2f} with its card's other devices)", sum);
}

}  // namespace dhc
