// The part of IncidentTurn that forgets: devices that are well again, and cards that have left their places.
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "domain/incidents/incident_turn.h"

namespace dhc {

namespace {

constexpr Millis kShown = std::chrono::minutes(10);  // how long an ended incident is still told
// What has been absent for so long is forgotten even with an open incident.
constexpr Millis kForgetAbsent = std::chrono::hours(24 * 30);
// Of cards that have left their places.
constexpr std::size_t kMostDeparted = 4096;
constexpr std::size_t kMostDepartedOfPlace = 64;

}  // namespace

void IncidentTurn::depart(DeviceRecord old) {
  old.incident.take(IncidentEvent::Departed);
  old.ours = {};
  old.past.losses.clear();
  old.card.beside.clear();
  auto key = identity_key(old.key, old.card.value);
  incidents_.departed_.insert_or_assign(std::move(key), std::move(old));
}

/// Of so many at most, overall and of one place, the lightest and oldest go first, as from what is written down: a
/// driver that names another card each minute must not fill the memory.
bool IncidentTurn::bound_departed() {
  auto& departed = incidents_.departed_;
  std::map<std::pair<std::string, std::string>, std::size_t> of_place;  // by driver or resource, and pool or node
  const bool fits = departed.size() <= kMostDeparted && std::ranges::all_of(departed, [&](const auto& entry) {
                      return ++of_place[{entry.second.key.scope, entry.second.key.place}] <= kMostDepartedOfPlace;
                    });
  if (fits) return false;
  std::vector<const DeviceRecord*> by_weight;
  for (const auto& [key, record] : departed) by_weight.push_back(&record);
  std::ranges::sort(by_weight, std::greater(), [](const DeviceRecord* record) {
    return std::tie(record->past.penalty, record->past.penalty_at, record->card.value);
  });
  of_place.clear();
  std::vector<std::string> dropped;
  std::size_t kept = 0;
  for (const auto* record : by_weight) {
    auto& there = of_place[{record->key.scope, record->key.place}];
    if (kept < kMostDeparted && there < kMostDepartedOfPlace) {
      ++kept;
      ++there;
    } else {
      dropped.push_back(identity_key(record->key, record->card.value));
    }
  }
  for (const auto& key : dropped) departed.erase(key);
  return true;
}

void IncidentTurn::forget() {
  const RecoverRules defaults;
  const auto recover_rules = [&](const DeviceRecord& record) -> const RecoverRules& {
    const auto* rules = rules_of(record, seen_.policy);
    return rules == nullptr ? defaults : *rules;
  };
  const auto is_light = [&](const DeviceRecord& record) {
    return is_negligible(record.past, recover_rules(record), now_.wall);
  };
  const auto forgettable = [&](const DeviceRecord& record) {
    const auto* facts = record.incident.facts();
    if (facts != nullptr && facts->absent_since) {
      if (now_.wall - *facts->absent_since >= kForgetAbsent) return true;
      wake(*facts->absent_since + kForgetAbsent);
    }
    const auto* end = record.incident.end();
    const bool shown = end != nullptr && now_.wall - end->at < kShown;
    if (shown) wake(end->at + kShown);
    // The newest is the first.
    const auto& losses = record.past.losses;
    if (!losses.empty()) wake(losses.front().at + kLossMemory);
    if (facts != nullptr || record.ours.any() || !losses.empty() || record.incident.probation_until()) return false;
    if (record.past.is_lemon || shown) return false;
    if (is_light(record)) return true;
    wake(negligible_at(record.past, recover_rules(record)));
    return false;
  };
  std::vector<DeviceKey> forgotten;
  for_each_record([&](const DeviceKey& key, const DeviceRecord& record) {
    if (forgettable(record)) forgotten.push_back(key);
  });
  for (const auto& key : paid_) {
    incidents_.touched_.insert(key);
    const auto found = incidents_.records_.find(key);
    // Time says nothing else of it, but while it is on probation: then this is not what it waits for.
    if (is_in(seen_.focus, key) || found == incidents_.records_.end() || found->second.incident.probation_until())
      continue;
    incidents_.wakes_.erase(key);
    looks_at_ = &key;
    if (forgettable(found->second)) forgotten.push_back(key);
  }
  looks_at_ = nullptr;
  for (const auto& key : forgotten) incidents_.records_.erase(key);
  // No operator can acknowledge a card that is gone: its quarantine ends with its penalty.
  const auto count =
      forgotten.size() + std::erase_if(incidents_.departed_, [&](const auto& entry) { return is_light(entry.second); });
  if (bound_departed() || count > 0) changed();
}

}  // namespace dhc
