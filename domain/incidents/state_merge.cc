#include "domain/incidents/state_merge.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "domain/cluster/card_names.h"
#include "domain/incidents/incident_store.h"

namespace dhc {

namespace {

constexpr std::size_t kMostRemembered = 10;  // of incidents, and of losses

WallTime began_at(const DeviceRecord& record) {
  return record.past.incidents.empty() ? WallTime() : record.past.incidents.back().at;
}

/// 0.1.0 has found a rule or a node's taint of which it remembered nothing: ours.
bool is_adopted(const DeviceRecord& record) {
  return !record.past.incidents.empty() && record.past.incidents.back().reason.starts_with("adopted from ");
}

void merge_losses(std::vector<OwnerLoss>& ours, std::vector<OwnerLoss> theirs) {
  for (auto& loss : theirs) {
    const auto known = std::ranges::find(ours, loss.owner_uid, &OwnerLoss::owner_uid);
    if (known == ours.end()) {
      ours.push_back(std::move(loss));
    } else if (known->at < loss.at) {
      *known = std::move(loss);
    }
  }
  std::ranges::sort(ours, std::greater(), [](const OwnerLoss& loss) { return std::tie(loss.at, loss.owner_uid); });
  if (ours.size() > kMostRemembered) ours.resize(kMostRemembered);
}

/// One more penalty for an incident that opened then, each as far as it has decayed by the later time.
void add_penalty(DeviceHistory& ours, const RecoverRules& rules, WallTime opened_at) {
  DeviceHistory alone;
  alone.penalty = 1;
  alone.penalty_at = opened_at;
  const auto at = std::max(ours.penalty_at, opened_at);
  ours.penalty = penalty_of(ours, rules, at) + penalty_of(alone, rules, at);
  ours.penalty_at = at;
}

/// The incidents that began after the last one of ours.
void merge_past(DeviceHistory& ours, const DeviceHistory& theirs, const RecoverRules& rules) {
  const WallTime last = ours.incidents.empty() ? WallTime() : ours.incidents.back().at;
  for (const auto& incident : theirs.incidents) {
    if (incident.at <= last) continue;
    ours.incidents.push_back(incident);
    if (ours.incidents.size() > kMostRemembered) ours.incidents.pop_front();
    ++ours.count;
    add_penalty(ours, rules, incident.at);
  }
  ours.policy = theirs.policy;
  ours.count = std::max(ours.count, theirs.count);
  ours.is_lemon = theirs.is_lemon;
}

void merge_record(DeviceRecord& ours, DeviceRecord theirs, const Policy& policy) {
  merge_losses(ours.past.losses, std::move(theirs.past.losses));
  if (is_adopted(theirs)) return;
  if (began_at(theirs) > began_at(ours)) {
    const auto* rules = rules_of(theirs, policy);
    merge_past(ours.past, theirs.past, rules == nullptr ? RecoverRules() : *rules);
    ours.incident = std::move(theirs.incident);
    ours.ours = std::move(theirs.ours);
  } else if (began_at(theirs) == began_at(ours) && ours.is_open()) {
    if (theirs.incident.end() != nullptr) {
      ours.incident = std::move(theirs.incident);
      ours.ours = std::move(theirs.ours);
      return;
    }
    if (theirs.is_acknowledged()) (void)acknowledge(ours, theirs.incident.acknowledged());
    if (theirs.ours.rule.is_leaving()) ours.ours.rule = std::move(theirs.ours.rule);
    if (theirs.ours.node.is_leaving()) ours.ours.node = std::move(theirs.ours.node);
  }
}

bool is_other_card(const CardIdentity& a, const CardIdentity& b) {
  // 0.1.0 wrote of a partition its card alone.
  const bool is_of_it = names_parent(a.attribute) && is_parent_of(b.value, a.value);
  return !a.value.empty() && !b.value.empty() && a.attribute == b.attribute && a.value != b.value && !is_of_it;
}

}  // namespace

void merge_earlier(StateContent& ours, StateContent earlier, const Policy& policy) {
  std::map<DeviceKey, DeviceRecord*> known;
  std::set<std::string> cards;
  for (auto& record : ours.records) {
    known.emplace(record.key, &record);
    cards.insert(identity_key(record.key, record.card.value));
    // A mark that is seen is ours again; one that is gone is nobody's word.
    if (record.is_open()) record.ours = {};
  }
  for (const auto& record : ours.departed) cards.insert(identity_key(record.key, record.card.value));
  std::vector<DeviceRecord> others;
  for (auto& theirs : earlier.records) {
    const auto found = known.find(theirs.key);
    if (found == known.end()) {
      // What it has read off our rule or taint, we read there as well.
      if (!is_adopted(theirs)) others.push_back(std::move(theirs));
    } else if (!is_other_card(found->second->card, theirs.card)) {
      merge_record(*found->second, std::move(theirs), policy);
    } else if (!is_adopted(theirs) && began_at(theirs) > began_at(*found->second)) {
      *found->second = std::move(theirs);
    }
  }
  std::ranges::move(others, std::back_inserter(ours.records));
  for (auto& theirs : earlier.departed) {
    if (!cards.contains(identity_key(theirs.key, theirs.card.value))) ours.departed.push_back(std::move(theirs));
  }
}

}  // namespace dhc
