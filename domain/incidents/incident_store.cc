#include "domain/incidents/incident_store.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "domain/contract/our_taint.h"
#include "domain/history/card_penalty.h"
#include "domain/incidents/card_memory.h"
#include "domain/incidents/incident_turn.h"
#include "domain/incidents/state_caps.h"
#include "domain/incidents/suspect_watch.h"
#include "domain/limits/caps.h"

namespace dhc {

std::string identity_key(const DeviceKey& key, const std::string& identity) { return key.scope + '\0' + identity; }

const DevicePolicy* policy_of(const DeviceRecord& record, const Policy& policy) {
  const auto found = std::ranges::find(policy.policies, record.past.policy, &DevicePolicy::name);
  return found == policy.policies.end() ? nullptr : &*found;
}

KnownCard known_card(const DeviceRecord& record, const Policy* policy) {
  const auto* rules = policy == nullptr ? nullptr : rules_of(record, *policy);
  return {.identity = {.attribute = record.card.attribute, .value = record.card.value},
          .beside = record.card.beside,
          .wanted = rules == nullptr ? std::string() : rules->identity_attribute};
}

const RecoverRules* rules_of(const DeviceRecord& record, const Policy& policy) {
  const auto* found = policy_of(record, policy);
  return found == nullptr ? nullptr : &found->recover;
}

Millis absence_of(const World& world, const DeviceRecord& record) {
  // A process that began when the slices had gone already knows no node of the pool, which often has its name.
  const auto& key = record.key;
  const bool stands = world.node_under(key) != nullptr || world.node(key.place) != nullptr ||
                      (record.card.host && world.node(*record.card.host) != nullptr);
  return std::chrono::hours(stands ? 24 * 7 : 24);
}

bool is_long_absent(const DeviceRecord& record, const World& world, WallTime now) {
  const auto* facts = record.incident.facts();
  return facts != nullptr && facts->absent_since && now - *facts->absent_since >= absence_of(world, record);
}

void IncidentStore::observe(const DeviceSighting& sighting) { IncidentTurn(*this, sighting).run(); }

const DeviceRecord* IncidentStore::find(const DeviceKey& key) const { return find_record(records_, key); }

std::optional<WallTime> IncidentStore::probation_of(const DeviceKey& key, WallTime now) const {
  const auto* record = find(key);
  const auto until = record == nullptr ? std::nullopt : record->incident.probation_until();
  return until && now < *until ? until : std::nullopt;
}

std::vector<const DeviceRecord*> IncidentStore::replicas_of(const DeviceKey& key) const {
  std::vector<const DeviceRecord*> found;
  for_each_of_card(records_, key, [&](const DeviceKey& other, const DeviceRecord& record) {
    if (other != key) found.push_back(&record);
  });
  return found;
}

bool IncidentStore::intend_untaint(const World& world, const std::set<std::string>& nodes, const Focus* focus) {
  const auto before = revision_;
  for_each_in(focus, records_, [&](const DeviceKey& key, DeviceRecord& record) {
    auto& mark = record.ours.node;
    if (!record.is_open() || !mark.stands() || record.is_acknowledged()) return;
    const bool leaves = nodes.contains(world.node_of(key));
    if (mark.is_leaving() == leaves) return;
    mark.take(leaves ? MarkEvent::Meant : MarkEvent::Kept);
    touched_.insert(key);
    ++revision_;
    record.ours.noted_by = revision_;
  });
  return revision_ != before;
}

void IncidentStore::rule_removal_sent(const DeviceKey& key) {
  const auto found = records_.find(key);
  touched_.insert(key);
  if (found != records_.end()) found->second.ours.rule.take(MarkEvent::Sent);
}

void IncidentStore::rule_write_sent(const DeviceKey& key) {
  const auto found = records_.find(key);
  if (found != records_.end()) found->second.ours.rule_doubt.note_sent();
}

void IncidentStore::rule_write_done(const DeviceKey& key) {
  const auto found = records_.find(key);
  touched_.insert(key);
  if (found != records_.end()) found->second.ours.rule_doubt.clear();
}

void IncidentStore::rule_write_lost(const DeviceKey& key, MonoTime until) {
  const auto found = records_.find(key);
  touched_.insert(key);
  if (found == records_.end()) return;
  auto& ours = found->second.ours;
  // What goes before its answer leaves no doubt about the next.
  ours.rule_doubt.clear();
  if (ours.rule.stands()) ours.rule_doubt.note_lost(until);
}

void IncidentStore::rule_write_altered(const DeviceKey& key) {
  const auto found = records_.find(key);
  touched_.insert(key);
  if (found == records_.end()) return;
  auto& ours = found->second.ours;
  ours.rule_doubt.clear();
  if (!ours.rule.stands()) return;
  ours.rule_doubt.note_altered();
  if (ours.rule.is_leaving()) return;
  ours.rule.take(MarkEvent::Meant);
  ++revision_;
  ours.noted_by = revision_;
}

void IncidentStore::rule_removal_failed(const DeviceKey& key) {
  const auto found = records_.find(key);
  touched_.insert(key);
  if (found != records_.end()) found->second.ours.rule.take(MarkEvent::Refused);
}

void IncidentStore::excuse(const std::vector<DeviceOnset>& onsets, const Suspects& suspects, const World& world,
                           const Policy& policy, const Now& now) {
  if (onsets.empty()) return;
  std::map<DeviceKey, std::set<WallTime>> by_card;
  for (const auto& onset : onsets) by_card[onset.card].insert(onset.named_at);
  struct Excused {
    DeviceRecord& record;
    bool is_blamed = false;           // its incident that goes on is one of them
    std::vector<WallTime> incidents;  // none: of its card others are excused
    double highest = 0;               // of its card's penalty, with what is excused
  };
  const auto rules_for = [&](const DeviceRecord& record) {
    const auto* known = rules_of(record, policy);
    return known == nullptr ? RecoverRules() : *known;
  };
  const auto highest_of = [&](const DeviceRecord& record) {
    const auto others = pasts_of(others_of_card(*this, record, world, policy));
    return highest_card_penalty(record.past, others, rules_for(record), now.wall);
  };
  std::vector<Excused> taken_back;
  std::set<DeviceKey> excused;
  std::set<DeviceKey> beside;
  const auto take = [&](DeviceRecord& record, bool is_blamed, std::vector<WallTime> incidents) {
    taken_back.push_back({.record = record,
                          .is_blamed = is_blamed,
                          .incidents = std::move(incidents),
                          .highest = record.past.is_lemon ? highest_of(record) : 0});
    touched_.insert(record.key);
    ++revision_;
  };
  for (auto& [key, record] : records_) {
    const auto found = by_card.find(world.card_of(key));
    if (found == by_card.end()) continue;
    const auto& blamed = found->second;
    std::vector<WallTime> incidents;
    for (const auto& past : record.past.incidents) {
      if (blamed.contains(past.at)) incidents.push_back(past.at);
    }
    if (incidents.empty() || record.is_acknowledged()) continue;
    const auto* facts = record.incident.facts();
    const auto* state = world.tracker().find(key);
    const bool is_held = state != nullptr && !state->holders.empty();
    if (facts != nullptr && is_held && !is_with_suspects(suspects, key, world)) continue;
    take(record, facts != nullptr && blamed.contains(named_at(*facts)), std::move(incidents));
    excused.insert(key);
    for (const auto* other : others_of_card(*this, record, world, policy)) {
      if (find(other->key) == other) beside.insert(other->key);
    }
  }
  // What was counted of one device may have quarantined another of its card, which did not break with the suspects.
  for (const auto& key : beside) {
    auto& record = records_.at(key);
    if (!excused.contains(key) && record.past.is_lemon && !record.is_acknowledged()) take(record, false, {});
  }
  std::set<const DeviceRecord*> lemons;
  for (auto& [record, is_blamed, incidents, highest] : taken_back) {
    if (record.past.is_lemon) lemons.insert(&record);
    for (const auto at : incidents) take_back_incident(record.past, rules_for(record), at, now.wall);
  }
  for (auto& [record, is_blamed, incidents, highest] : taken_back) {
    // What broke by itself above the limit stays. Where the limit was raised since nobody knows which that was: then
    // whatever broke by itself does.
    const auto limit = rules_for(record).quarantine_above;
    record.past.is_lemon = lemons.contains(&record) && highest_of(record) > (highest > limit ? limit : 0);
    const auto* facts = record.incident.facts();
    if (facts == nullptr || (record.is_quarantined() && record.past.is_lemon)) continue;
    if (!is_blamed) {
      // What had led to its quarantine is forgotten, and the incident goes on.
      record.incident.take(IncidentEvent::PastDeleted);
      continue;
    }
    // From here on the absence of our rule is our own doing, also for the process after us.
    record.ours.rule.take(MarkEvent::Meant);
    record.ours.noted_by = revision_;
    record.incident.excuse(now.wall, "what ran on it is suspected of breaking devices: on probation for 24 h",
                           now.wall + kProbation);
  }
}

void IncidentStore::charge(std::vector<EvictionCharge> charges, const std::set<std::string>& going,
                           const RequestTracker& requests, const Now& now) {
  if (charges.empty()) return;
  ++revision_;
  for (auto& charge : charges) {
    charge.revision = revision_;
    touched_pods_.insert(charge.pod_uid);
    caps_.charge(std::move(charge));
  }
  for (CapsSize size(caps_); size.bytes() > kCapsLimit;) {
    const auto* gives_way = caps_.first_to_give_way(going, requests, now);
    if (gives_way == nullptr) break;
    size.drop(*gives_way);
    const auto uid = gives_way->pod_uid;
    touched_pods_.insert(uid);
    caps_.drop(uid);
  }
}

void IncidentStore::settle_charges(const World& world, const RequestTracker& requests, const Policy& policy,
                                   const Now& now) {
  const auto state_of = [](const EvictionCharge& charge) {
    return std::tuple(charge.counted, charge.half_since, charge.key);
  };
  std::map<std::string, std::tuple<bool, std::optional<WallTime>, DeviceKey>> before;
  for (const auto& [uid, charge] : caps_.charges()) before.emplace(uid, state_of(charge));
  bool changed = caps_.settle(world, requests, now);
  for (const auto& [uid, known] : before) {
    const auto found = caps_.charges().find(uid);
    if (found == caps_.charges().end() || state_of(found->second) != known) touched_pods_.insert(uid);
  }
  if (const auto until = cap_release(policy.cap_release, now)) changed = caps_.release(*until) || changed;
  if (changed) ++revision_;
}

void IncidentStore::follow_out_of_service(const World& world, const Policy& policy, const Now& now,
                                          const Focus* focus) {
  if (caps_.follow(world, records_, policy, now, focus)) ++revision_;
}

void IncidentStore::load(std::vector<DeviceRecord> records, std::vector<DeviceRecord> departed, CapBook caps) {
  caps_ = std::move(caps);
  records_.clear();
  departed_.clear();
  for (auto& record : records) {
    const DeviceKey key = record.key;
    records_.insert_or_assign(key, std::move(record));
  }
  for (auto& record : departed) {
    auto key = identity_key(record.key, record.card.value);
    departed_.insert_or_assign(std::move(key), std::move(record));
  }
}

void IncidentStore::await_earlier_removals(MonoTime until) {
  for (auto& [key, record] : records_) {
    const auto& ours = record.ours;
    // What stands of an incident that has ended is to go, also where that is not written down for it.
    const bool goes = ours.rule.is_leaving() || ours.node.is_leaving() || (ours.any() && !record.is_open());
    if (goes) record.ours.earlier_removal_by = until;
  }
}

namespace {

/// Takes the rules of records that fit out of those that have gone.
template <class Fits>
void drop_rules_of(const DeviceRecords& records, std::map<std::string, WallTime>& removed_rules, const Fits& fits) {
  if (removed_rules.empty()) return;
  for (const auto& [key, record] : records) {
    if (key.source != DeviceKey::Source::Dra) break;  // they come first
    if (!fits(record)) continue;
    removed_rules.erase(rule_name(key));
    removed_rules.erase(old_rule_name(key));
  }
}

}  // namespace

void IncidentStore::drop_leaving(std::map<std::string, WallTime>& removed_rules) const {
  drop_rules_of(records_, removed_rules, [](const DeviceRecord& record) { return record.ours.rule.is_leaving(); });
}

void IncidentStore::drop_judged(std::map<std::string, WallTime>& removed_rules) const {
  // A rule that stood in the incident and stands no more was judged in the turn that saw it go.
  drop_rules_of(records_, removed_rules,
                [](const DeviceRecord& record) { return !record.ours.rule.stands() && record.incident.was_tainted(); });
}

void IncidentStore::forget_past() {
  for (const auto& [key, record] : records_) touched_.insert(key);
  departed_.clear();
  // What still has a taint to lose is kept until that is gone.
  std::erase_if(records_, [](const auto& entry) {
    const auto& record = entry.second;
    return !record.is_open() && !record.ours.any();
  });
  for (auto& [key, record] : records_) {
    auto& past = record.past;
    past.count = 1;
    past.penalty = 1;
    past.is_lemon = false;
    if (past.incidents.size() > 1) past.incidents.erase(past.incidents.begin(), past.incidents.end() - 1);
    record.incident.take(IncidentEvent::PastDeleted);
  }
  ++revision_;
}

namespace {

/// Whether the leader before has opened it, by its own word on a pod that holds the device: what is not remembered of
/// it is lost, and not judged.
bool is_told_of(const DeviceState& state, const DeviceKey& key, const World& world) {
  return std::ranges::any_of(state.holders, [&](std::string_view uid) {
    const auto* record = world.pod(uid);
    if (record == nullptr || !record->told || !is_live(record->pod)) return false;
    const auto* word = record->word_of(to_string(key));
    return word != nullptr && !is_drivers_own(word->source);
  });
}

}  // namespace

std::set<DeviceKey> IncidentStore::judged_before(const World& world, const std::vector<AffectedPod>& affected_pods,
                                                 MonoTime term_began) const {
  std::set<DeviceKey> judged;
  for (const auto& key : world.tracker().not_healthy()) {
    const auto* state = world.tracker().find(key);
    const auto* record = find(key);
    if (!state->forgotten || !state->unhealthy_since || (record != nullptr && record->is_open())) continue;
    if (!is_told_of(*state, key, world)) judged.insert(key);
  }
  for (const auto& affected : affected_pods) {
    if (affected.opens_at > term_began) judged.erase(affected.key);
  }
  return judged;
}

std::map<DeviceKey, OpenIncident> IncidentStore::open_incidents(const Policy* policy) const {
  std::map<DeviceKey, OpenIncident> open;
  for (const auto& [key, record] : records_) {
    if (auto incident = open_incident(key, policy)) open.emplace(key, *std::move(incident));
  }
  return open;
}

std::optional<OpenIncident> IncidentStore::open_incident(const DeviceKey& key, const Policy* policy) const {
  const auto* found = find(key);
  if (found == nullptr || !key.is_device()) return std::nullopt;
  const auto& record = *found;
  const auto* facts = record.incident.facts();
  if (facts == nullptr || facts->evidence.was_well()) return std::nullopt;
  const auto& past = record.past.incidents;
  return OpenIncident{.since = facts->since,
                      .host_uid = record.card.host_uid,
                      .word = last_word_of(key, *facts),
                      .boot_id = facts->reporter.boot_id,
                      .forgotten = is_forgotten(record),
                      .informed = facts->reporter.informed,
                      .vouched_for = record.is_acknowledged(),
                      .reported = !is_drivers_own(facts->source),
                      .taint = facts->taint,
                      .taint_seen = facts->driver_taint.has_value(),
                      .said = past.empty() ? std::string() : past.back().reason,
                      .policy = record.past.policy,
                      .card = known_card(record, policy)};
}

std::vector<DeviceKey> IncidentStore::due(const Now& now) const { return wakes_.due(now.mono); }

std::set<Inventory::PoolName> IncidentStore::guarded_pools(const World& world, WallTime now) const {
  std::set<Inventory::PoolName> pools;
  for (const auto& [key, record] : records_) {
    if (key.source != DeviceKey::Source::Dra) break;  // they come first
    if (!record.is_open() && !record.past.is_lemon) continue;
    if (!is_long_absent(record, world, now)) pools.emplace(key.scope, key.place);
  }
  return pools;
}

std::map<Inventory::PoolName, PoolHome> IncidentStore::homes() const {
  struct Said {
    std::set<std::string> names;
    std::set<std::string> uids;
  };
  std::map<Inventory::PoolName, Said> said;
  for (const auto& [key, record] : records_) {
    if (key.source != DeviceKey::Source::Dra) continue;
    if (record.card.host) said[{key.scope, key.place}].names.insert(*record.card.host);
    if (!record.card.host_uid.empty()) said[{key.scope, key.place}].uids.insert(record.card.host_uid);
  }
  // Two of one pool that differ prove nothing; but two UIDs under one name are a node that was made anew.
  std::map<Inventory::PoolName, PoolHome> homes;
  for (const auto& [pool, what] : said) {
    if (what.names.size() == 1) {
      homes[pool].node = *what.names.begin();
    } else if (what.names.empty() && what.uids.size() == 1) {
      homes[pool].node_uid = *what.uids.begin();
    }
  }
  return homes;
}

}  // namespace dhc
