// The half of IncidentTurn that follows incidents to their end.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/rfc3339.h"
#include "base/wake.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/history/card_penalty.h"
#include "domain/incidents/card_memory.h"
#include "domain/incidents/incident_turn.h"
#include "domain/incidents/seen_taints.h"

namespace dhc {

namespace {

/// In the place of a reporter's name.
constexpr std::string_view kGoneInformer = "its plugin without the metrics exporter pod, which has gone,";

/// A wall clock that was once ahead must not hold a device for years.
bool pull_back(WallTime& time, WallTime limit) {
  if (time <= limit) return false;
  time = limit;
  return true;
}
bool pull_back(std::optional<WallTime>& time, WallTime limit) { return time && pull_back(*time, limit); }

/// What others rest on.
auto outline_of(const DeviceRecord* record) {
  using Outline = std::tuple<bool, IncidentPhase, bool, Acknowledged, WallTime>;
  if (record == nullptr) return Outline{};
  const auto* facts = record->incident.facts();
  return Outline{true, record->incident.phase(), facts != nullptr && facts->evidence.was_well(),
                 record->incident.acknowledged(), facts == nullptr ? WallTime() : facts->opened_at};
}

}  // namespace

void IncidentTurn::run() {
  if (looks_at_all()) {
    incidents_.wakes_.clear();
  } else {
    for (const auto& key : seen_.focus->devices) incidents_.wakes_.erase(key);
  }
  std::map<DeviceKey, decltype(outline_of(nullptr))> before;
  for_each_record([&](const DeviceKey& key, const DeviceRecord& record) { before.emplace(key, outline_of(&record)); });
  conclude();
  const auto note = [&](const DeviceKey& key) {
    const auto known = before.find(key);
    if (outline_of(incidents_.find(key)) != (known == before.end() ? outline_of(nullptr) : known->second))
      incidents_.touched_.insert(key);
  };
  for (const auto& [key, outline] : before) note(key);
  for_each_record([&](const DeviceKey& key, const DeviceRecord& /*record*/) { note(key); });
  incidents_.next_change_at_ = incidents_.wakes_.next_after(seen_.now.mono);
}

void IncidentTurn::conclude() {
  collect_affected();
  adopt_rules();
  for (const auto& [key, affected] : speaking_) open_or_continue(key, *affected);
  for (const auto& [place, rejecting] : seen_.rejecting_nodes)
    open_rejecting(DeviceKey::rejecting_node(place.first, place.second), rejecting);
  believe();
  adopt_nodes();
  note_losses();
  for_each_record([&](const DeviceKey& /*key*/, DeviceRecord& record) { look_at(record); });
  settle_untainting();
  for (const auto& [name, at] : seen_.removed_rules) incidents_.card_removals_.erase(name);
  for (auto& record : replaced_) retire(record);
  for (auto& record : rehosted_) leave_host(record);
  forget();
}

void IncidentTurn::wake(WallTime at) {
  const MonoTime when = now_.mono + std::chrono::ceil<Millis>(at - now_.wall);
  incidents_.wakes_.note(*looks_at_, when);
}

void IncidentTurn::look_at(DeviceRecord& record) {
  repair_times(record);
  look_at_host(record);
  if (is_other_card(record)) {
    replaced_.push_back(record);
    return;
  }
  if (is_other_host(record)) {
    rehosted_.push_back(record);
    return;
  }
  look_at_identity(record);
  const SeenTaints seen_taints{.world = seen_.world,
                               .removed_rules = seen_.removed_rules,
                               .removed_taints = seen_.removed_taints,
                               .untainting = incidents_.untainting_,
                               .card_removals = incidents_.card_removals_,
                               .now = now_};
  const auto let_go = record.ours.let_go.size();
  const bool was_vouched_for = record.is_acknowledged();
  if (look_at_taint(record, seen_taints)) changed();
  if (record.is_open() && record.is_acknowledged() && !was_vouched_for)
    pay_card(record, looked_at_until(record, seen_.world, now_.wall).value_or(now_.wall));
  // The rule of a device that was let go is removed by us: the process after us must not make it again.
  if (record.ours.let_go.size() != let_go) record.ours.noted_by = incidents_.revision_;
  await_word(record);
  if (const auto until = record.incident.probation_until()) {
    if (now_.wall < *until) {
      wake(*until);
      look_at_trial(record);
    } else {
      record.incident.take(IncidentEvent::ProbationOver);
      changed();
    }
  }
  if (!record.is_open()) return;
  look_at_policy(record);
  look_at_evidence(record);
  look_at_presence(record);
  const auto recovery = recovery_of(record, rules_of(record, seen_.policy), now_);
  if (recovery.over) return close(record, recovery);
  if (recovery.at) wake(*recovery.at);
}

/// Who vouches for a device vouches for its card: what its other devices have added until then would quarantine it at
/// the next fault. An incident of theirs that goes on is judged by itself.
void IncidentTurn::pay_card(const DeviceRecord& record, WallTime vouched_until) {
  const auto pay = [&](DeviceRecord& other) {
    auto& past = other.past;
    if (other.is_open() || (past.penalty == 0 && !past.is_lemon)) return false;
    const auto* known = rules_of(other, seen_.policy);
    const auto rules = known == nullptr ? RecoverRules() : *known;
    const auto left = penalty_after(past, rules, vouched_until, now_.wall);
    if (left >= penalty_of(past, rules, now_.wall) && (!past.is_lemon || left > rules.quarantine_above)) return false;
    past.is_lemon = past.is_lemon && left > rules.quarantine_above;
    if (left > 0) past.penalty_at = now_.wall;
    past.penalty = left;
    changed();
    return true;
  };
  for (const auto* other : others_of_card(incidents_, record, seen_.world, seen_.policy)) {
    const auto found = incidents_.records_.find(other->key);
    if (found != incidents_.records_.end() && &found->second == other) {
      if (pay(found->second)) paid_.insert(other->key);
      continue;
    }
    const auto gone = incidents_.departed_.find(identity_key(other->key, other->card.value));
    if (gone != incidents_.departed_.end()) pay(gone->second);
  }
}

/// A pod that holds the device for `healthyFor`, while nobody calls that bad, works on it.
void IncidentTurn::look_at_trial(DeviceRecord& record) {
  auto& trial = *record.incident.trial();
  if (!trial.is_unproven) return;
  const auto* state = seen_.world.tracker().find(record.key);
  const bool is_called_bad =
      affected_devices_.contains(record.key) || seen_.world.inventory().tainted_by_driver(record.key) == true;
  const bool is_used = state != nullptr && !state->holders.empty() && state->health != k8s::Health::Unhealthy;
  if (!is_used || is_called_bad) {
    trial.used_since.reset();
    return;
  }
  const auto* rules = rules_of(record, seen_.policy);
  const auto needed = (rules == nullptr ? RecoverRules() : *rules).healthy_for;
  if (!trial.used_since) trial.used_since = now_.mono;
  if (now_.mono - *trial.used_since < needed) return wake(wall_of(*trial.used_since + needed, now_));
  trial = {};
  changed();
}

/// An operator's word on the node that is dated ahead counts once its time has come.
void IncidentTurn::await_word(const DeviceRecord& record) {
  const auto* node = record.is_open() ? seen_.world.node_under(record.key) : nullptr;
  const auto said = node == nullptr ? std::nullopt : k8s::find(node->meta.annotations, kAcknowledgeAnnotation);
  const auto at = said ? parse_rfc3339(*said) : std::nullopt;
  if (at && *at > now_.wall) wake(*at);
}

/// Whose the pool is, for the process after this one: while its node is gone nothing in the cluster says it.
void IncidentTurn::look_at_host(DeviceRecord& record) {
  if (record.key.source != DeviceKey::Source::Dra) return;
  const auto& pools = seen_.world.inventory().pools();
  const auto pool = pools.find({record.key.scope, record.key.place});
  if (pool == pools.end()) return;
  set(record.card.host, pool->second.is_settled ? std::optional(pool->second.node) : std::nullopt);
}

/// Another attribute says nothing about the card: the record learns it, and compares from then on. So it does with the
/// names that a driver makes anew for all its cards.
void IncidentTurn::look_at_identity(DeviceRecord& record) {
  if (policy_of(record, seen_.policy) == nullptr) return;
  const auto& inventory = seen_.world.inventory();
  auto& card = record.card;
  const auto identity = inventory.identity_now(record.key, known_card(record, &seen_.policy));
  if (!identity) return;
  auto beside = inventory.marks_beside(record.key, identity->attribute);
  // As long as the generation is not whole nobody knows whether it is another card.
  if (!beside && !card.value.empty() && card.attribute == identity->attribute) return;
  set(card.value, identity->value);
  set(card.attribute, identity->attribute);
  if (beside) set(card.beside, *std::move(beside));
}

/// What is written down of it is since when the device is quiet.
void IncidentTurn::hear(IncidentFacts& facts, EvidenceEvent event) {
  const auto before = facts.evidence.quiet_since();
  facts.evidence.take(event, now_);
  if (facts.evidence.quiet_since() != before) changed();
}

/// The kubelet is well when a pod that came after its last rejection runs.
void IncidentTurn::look_at_admission(const DeviceKey& key, IncidentFacts& facts) {
  const auto found = seen_.rejecting_nodes.find({key.place, key.scope});
  const auto before = facts.evidence.quiet_since();
  WallTime last = before.value_or(facts.opened_at);
  if (found != seen_.rejecting_nodes.end()) last = std::max(last, found->second.rejections.back().wall);
  facts.evidence.take(admitted_since(seen_.world, key, last) ? EvidenceEvent::CalledHealthy : EvidenceEvent::Silent,
                      now_);
  facts.evidence.be_quiet_since(last);
  if (before != last) changed();
}

/// Whoever reports on the device now has said so itself.
/// Each word once: its wall time may be one that the clock, set back since, has yet to come to.
void IncidentTurn::note_called_bad(DeviceRecord& record, const Moment& word) {
  if (word.mono <= record.past.last_word) return;
  record.past.last_word = word.mono;
  auto& facts = *record.incident.facts();
  const auto at = std::min(word.wall, now_.wall);
  if (at <= facts.called_bad_at) return;
  set(facts.called_bad_at, at);
  auto& seen = facts.reporter;
  set(seen.informed, seen_.world.has_informer(record.key));
  const auto reporter = seen_.world.reporter_of(record.key);
  if (reporter && !began_after(reporter->began, at, reporter->within)) note_start(seen, *reporter);
  if (seen.began_at && !began_after(*seen.began_at, at)) {
    seen.name.clear();
    seen.began_at.reset();
  }
  if (seen.booted_at && *seen.booted_at > at) return;
  seen.booted_at.reset();
  const auto* node = seen_.world.node_under(record.key);
  if (node != nullptr) seen.boot_id = node->boot_id;
}

/// What it called healthy it had forgotten; but an operator's word has ended with it all the same.
void IncidentTurn::forget_healthy(DeviceRecord& record) {
  if (!record.is_acknowledged()) hear(*record.incident.facts(), EvidenceEvent::TakenBack);
}

/// Who reports on it began before it was last called bad.
void IncidentTurn::note_start(ReporterSeen& seen, const Reporter& reporter) {
  set(seen.start, reporter.start ? std::optional(reporter.newest) : std::nullopt);
}

/// Whether who reports on the device, or its node, has begun anew since it was called bad: NVIDIA's and Habana's
/// drivers begin by calling every device healthy.
void IncidentTurn::look_at_reporter(DeviceRecord& record) {
  const auto* state = seen_.world.tracker().find(record.key);
  if (state != nullptr && state->called_bad_at) note_called_bad(record, *state->called_bad_at);
  auto& facts = *record.incident.facts();
  auto& seen = facts.reporter;
  const auto reporter = seen_.world.reporter_of(record.key);
  seen.is_known = reporter.has_value();
  const bool anew = reporter && may_have_forgotten(*reporter, last_word_of(record.key, facts));
  // Once: data that went back show an earlier start for a while.
  const bool is_noted = seen.start.has_value();
  if (reporter && !is_noted && !anew && !began_after(reporter->began, facts.called_bad_at, reporter->within)) {
    note_start(seen, *reporter);
  }
  // A node's clock that is behind tells a start before the word that it came after.
  const auto began = anew ? std::max(reporter->began, facts.called_bad_at) : WallTime();
  // A clock that was set back has yet to come to a start: that is taken for now, once.
  const bool is_later = anew && seen.began_at && *seen.began_at < began;
  if (anew && (!seen.began_at || (is_later && began <= now_.wall))) {
    set(seen.name, reporter->name);
    set(seen.began_at, std::optional(std::min(began, now_.wall)));
    forget_healthy(record);
  }
  if (anew && began > now_.wall) wake(began);
  look_at_informer(record);
  look_at_boot(record);
}

/// One that went while no controller watched left no trace but that it was there.
void IncidentTurn::look_at_informer(DeviceRecord& record) {
  auto& facts = *record.incident.facts();
  auto& seen = facts.reporter;
  if (seen_.world.has_informer(record.key)) return set(seen.informed, true);
  if (!seen.informed || seen.began_at || last_word_of(record.key, facts).taken_back_at) return;
  set(seen.name, std::string(kGoneInformer));
  set(seen.began_at, std::optional(now_.wall));
  forget_healthy(record);
}

void IncidentTurn::look_at_boot(DeviceRecord& record) {
  auto& seen = record.incident.facts()->reporter;
  const auto* node = seen_.world.node_under(record.key);
  if (node == nullptr || node->boot_id.empty()) return;
  if (seen.boot_id.empty()) set(seen.boot_id, node->boot_id);
  // Data that went back show an earlier boot for a while: that was none.
  if (node->boot_id == seen.boot_id) return set(seen.booted_at, std::optional<WallTime>());
  if (seen.booted_at) return;
  set(seen.booted_at, std::optional(now_.wall));
  forget_healthy(record);
}

void IncidentTurn::look_at_evidence(DeviceRecord& record) {
  auto& facts = *record.incident.facts();
  if (record.key.source == DeviceKey::Source::RejectingNode) return look_at_admission(record.key, facts);
  if (record.key.source == DeviceKey::Source::NodeTaint) {
    // Nobody reports on it, and only a boot of the node says something about it.
    look_at_boot(record);
    return hear(facts, EvidenceEvent::Silent);
  }
  const auto driver = seen_.world.inventory().tainted_by_driver(record.key);
  if (driver == true && (!facts.driver_taint || facts.driver_taint->gone_at)) note_called_bad(record, moment_of(now_));
  look_at_reporter(record);
  const auto* state = seen_.world.tracker().find(record.key);
  const bool is_affected = affected_devices_.contains(record.key);
  const bool held = state != nullptr && !state->holders.empty();
  const bool forgotten = is_forgotten(record);
  const bool healthy = held && state->has_source && state->health == k8s::Health::Healthy && !is_affected &&
                       driver != true && !forgotten;
  // Unknown from pods that have not seen the incident says nothing about it.
  const bool bad = state != nullptr && (state->health == k8s::Health::Unhealthy || !state->witnesses.empty());
  // Nor does Unknown once its reporter has begun anew: one that does so again and again must not extend the hold.
  const bool not_healthy = forgotten || forgotten_.contains(record.key)
                               ? called_bad_.contains(record.key) || (held && state->health == k8s::Health::Unhealthy)
                               : is_affected || (held && state->has_source && !healthy && bad);
  look_at_driver_taint(record.key, facts);
  if (healthy && !facts.called_healthy_at) set(facts.called_healthy_at, std::optional(now_.wall));
  const bool tainted = driver == true || tainted_.contains(record.key);
  if (tainted || (state != nullptr && state->health == k8s::Health::Unhealthy)) {
    set(facts.called_healthy_at, std::optional<WallTime>());
  }
  const bool quiet = !not_healthy && !tainted;
  hear(facts, healthy ? EvidenceEvent::CalledHealthy : quiet ? EvidenceEvent::Silent : EvidenceEvent::CalledBad);
  if (!quiet) look_at_cure(record, facts.reporter);
}

void IncidentTurn::look_at_driver_taint(const DeviceKey& key, IncidentFacts& facts) {
  const auto& inventory = seen_.world.inventory();
  const auto driver = inventory.tainted_by_driver(key);
  if (driver == true || tainted_.contains(key)) return set(facts.driver_taint, std::optional(DriverTaint()));
  // A driver that comes back has forgotten what it knew: that it says nothing then is no evidence.
  if (!driver) return set(facts.driver_taint, std::optional<DriverTaint>());
  if (!facts.driver_taint) return;
  // A later word of less weight is written over the fault, which is not taken back by that.
  if (inventory.has_taint(key, facts.taint.key)) return set(facts.driver_taint->gone_at, std::optional<WallTime>());
  if (!facts.driver_taint->gone_at) set(facts.driver_taint->gone_at, std::optional(now_.wall));
}

/// A device that is still bad `healthyFor` after a boot was not cured by it.
void IncidentTurn::look_at_cure(const DeviceRecord& record, ReporterSeen& reporter) {
  const auto* rules = rules_of(record, seen_.policy);
  const auto* node = seen_.world.node_under(record.key);
  if (!reporter.booted_at || rules == nullptr || node == nullptr) return;
  if (now_.wall < *reporter.booted_at + rules->healthy_for) return wake(*reporter.booted_at + rules->healthy_for);
  set(reporter.booted_at, std::optional<WallTime>());
  set(reporter.boot_id, node->boot_id);
}

void IncidentTurn::look_at_presence(DeviceRecord& record) {
  const auto& world = seen_.world;
  auto& absent_since = record.incident.facts()->absent_since;
  const auto* state = world.tracker().find(record.key);
  const bool held = state != nullptr && !state->holders.empty();
  // A plugin's devices have no names while nobody holds them: their node stands for them.
  const bool known = record.key.source != DeviceKey::Source::Dra ? world.node(record.key.place) != nullptr
                                                                 : world.inventory().published(record.key) != nullptr ||
                                                                       world.inventory().is_contested(record.key);
  if (held || known) return set(absent_since, std::optional<WallTime>());
  if (!absent_since) set(absent_since, std::optional(now_.wall));
  if (!is_long_absent(record, world, now_.wall)) return wake(*absent_since + absence_of(world, record));
  remove_rule(record.ours);
}

/// A policy that enforces and no longer asks for rules takes its rule back.
void IncidentTurn::look_at_policy(DeviceRecord& record) {
  const auto* policy = policy_of(record, seen_.policy);
  if (policy == nullptr || makes_rules(*policy) || effective_mode(policy, seen_.policy) != Mode::Enforce) return;
  if (!record.is_acknowledged()) remove_rule(record.ours);
}

/// The rule goes, the incident stays: that we remove it is written down first, or the process after us would take its
/// absence for an operator's word.
void IncidentTurn::remove_rule(OurMarks& ours) {
  if (ours.rule.phase() != MarkPhase::Stands) return;
  ours.rule.take(MarkEvent::Meant);
  changed();
  ours.noted_by = incidents_.revision_;
}

void IncidentTurn::repair_times(DeviceRecord& record) {
  bool repaired = false;
  const auto repair = [&](auto& time, WallTime latest) { repaired = pull_back(time, latest) || repaired; };
  repair(record.past.penalty_at, now_.wall);
  if (auto* facts = record.incident.facts()) {
    repair(facts->since, now_.wall);
    const auto name = named_at(*facts);
    if (pull_back(facts->opened_at, now_.wall)) {
      facts->first_opened_at = name;
      repaired = true;
    }
    repair(facts->called_bad_at, now_.wall);
    repair(facts->called_healthy_at, now_.wall);
    repair(facts->reporter.began_at, now_.wall);
    repair(facts->reporter.booted_at, now_.wall);
    repair(facts->absent_since, now_.wall);
    if (facts->driver_taint) repair(facts->driver_taint->gone_at, now_.wall);
    if (auto quiet_since = facts->evidence.quiet_since(); pull_back(quiet_since, now_.wall)) {
      facts->evidence.be_quiet_since(now_.wall);
      repaired = true;
    }
  }
  if (auto* end = record.incident.end()) repair(end->at, now_.wall);
  repaired = record.incident.end_probation_by(now_.wall + kProbation) || repaired;
  if (repaired) changed();
}

void IncidentTurn::close(DeviceRecord& record, const Recovery& recovery) {
  // From here on the absence of our rule is our own doing, also for the process after us.
  if (record.incident.acknowledged() != Acknowledged::Changed) record.ours.rule.take(MarkEvent::Meant);
  if (recovery.on_probation) {
    record.incident.hold_out(now_.wall, recovery.why, now_.wall + kProbation, recovery.is_unproven);
    wake(now_.wall + kProbation);
  } else {
    record.incident.recover(now_.wall, recovery.why);
  }
  changed();
  record.ours.noted_by = incidents_.revision_;
}

/// The node was made anew under its name, and nothing says that the device is the same.
bool IncidentTurn::is_other_host(DeviceRecord& record) {
  const auto is_other = is_on_other_host(record, seen_.world);
  if (is_other == false) set(record.card.host_uid, seen_.world.node_under(record.key)->meta.uid);
  return is_other.value_or(false);
}

/// What was known of the place is of another device; only what we made there is still to be removed.
void IncidentTurn::start_clean(const DeviceRecord& old, DeviceRecord fresh, std::string why) {
  fresh.past.policy = old.past.policy;
  const bool was_tainted = old.incident.was_tainted();
  fresh.incident.replace(now_.wall, std::move(why), was_tainted);
  if (const auto* facts = old.incident.facts()) fresh.incident.end()->opened_at = named_at(*facts);
  fresh.ours = old.ours;
  fresh.ours.rule.take(MarkEvent::Meant);
  fresh.ours.node.take(MarkEvent::Kept);
  fresh.ours.knows_rule = true;
  fresh.ours.noted_by = incidents_.revision_ + 1;
  fresh.card.host_uid = old.card.host_uid;
  fresh.card.host = old.card.host;
  incidents_.records_.insert_or_assign(old.key, std::move(fresh));
}

/// The history of a device with an identity waits for it to turn up again; that of another is gone with its node.
void IncidentTurn::leave_host(const DeviceRecord& record) {
  DeviceRecord old = record;
  if (old.is_open() || old.ours.any()) {
    start_clean(old, take_history(old.key, no_identity()), "its node was recreated under its name");
    incidents_.records_.find(old.key)->second.card.host_uid = seen_.world.node_under(old.key)->meta.uid;
  } else {
    incidents_.records_.erase(old.key);
  }
  if (!old.card.value.empty()) depart(std::move(old));
  changed();
}

/// Another card sits in the place: it starts clean, and the old one's history waits for it to turn up again.
void IncidentTurn::retire(DeviceRecord& record) {
  DeviceRecord old = record;
  const auto identity = seen_.world.inventory().identity_of(old.key, old.card.attribute);
  if (identity) start_clean(old, take_history(old.key, *identity), "another physical device sits in its place");
  depart(std::move(old));
  changed();
}

void IncidentTurn::settle_untainting() {
  std::erase_if(incidents_.untainting_, [&](const std::string& name) {
    const auto* node = seen_.world.node(name);
    return node == nullptr || !our_taint_on(*node);
  });
}

}  // namespace dhc
