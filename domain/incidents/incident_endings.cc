// The half of MemoryTurn that follows incidents to their end.
#include <algorithm>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/incidents/incident_turn.h"
#include "domain/incidents/seen_taints.h"

namespace dhc {

namespace {

constexpr Millis kProbation = std::chrono::hours(24);

/// A wall clock that was once ahead must not hold a device for years.
bool pull_back(WallTime& time, WallTime limit) {
  if (time <= limit) return false;
  time = limit;
  return true;
}
bool pull_back(std::optional<WallTime>& time, WallTime limit) { return time && pull_back(*time, limit); }

}  // namespace

void IncidentTurn::run() {
  collect_affected();
  adopt_rules();
  for (const auto& [key, affected] : speaking_) open_or_continue(key, *affected);
  for (const auto& [place, rejecting] : seen_.rejecting_nodes)
    open_rejecting(rejecting_node_key(place.first, place.second), rejecting);
  believe();
  adopt_nodes();
  note_losses();
  for (auto& [key, record] : incidents_.records_) look_at(record);
  settle_untainting();
  for (auto& record : replaced_) retire(record);
  for (auto& record : rehosted_) leave_host(record);
  forget();
  incidents_.next_change_at_ = next_.at();
}

void IncidentTurn::wake(WallTime at) { next_.note(now_.mono + std::chrono::ceil<Millis>(at - now_.wall)); }

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
                               .untainting = incidents_.untainting_,
                               .now = now_.wall};
  if (look_at_taint(record, seen_taints)) changed();
  if (record.probation_until && now_.wall >= *record.probation_until) {
    set(record.probation_until, std::optional<WallTime>());
  }
  if (record.probation_until) wake(*record.probation_until);
  if (!record.open) return;
  look_at_policy(record);
  look_at_evidence(record);
  look_at_presence(record);
  const auto recovery = recovery_of(record, rules_of(record, seen_.policy), now_);
  if (recovery.over) return close(record, recovery);
  if (recovery.at) wake(*recovery.at);
}

/// Whose the pool is, for the process after this one: while its node is gone nothing in the cluster says it.
void IncidentTurn::look_at_host(DeviceRecord& record) {
  if (record.key.source != DeviceKey::Source::Dra) return;
  const auto& pools = seen_.world.inventory().pools();
  const auto pool = pools.find({record.key.scope, record.key.place});
  if (pool == pools.end()) return;
  set(record.host, pool->second.is_settled ? std::optional(pool->second.node) : std::nullopt);
}

/// Another attribute says nothing about the card: the record learns it, and compares from then on.
void IncidentTurn::look_at_identity(DeviceRecord& record) {
  const auto* policy = policy_of(record, seen_.policy);
  if (policy == nullptr) return;
  const auto& wanted = policy->recover.identity_attribute;
  if (!record.identity.empty() && (wanted.empty() || wanted == record.identity_attribute)) return;
  const auto identity = seen_.world.inventory().identity_of(record.key, wanted);
  if (!identity) return;
  set(record.identity, identity->value);
  set(record.identity_attribute, identity->attribute);
}

/// The kubelet is well when a pod that came after its last rejection runs.
void IncidentTurn::look_at_admission(DeviceRecord& record) {
  const auto found = seen_.rejecting_nodes.find({record.key.place, record.key.scope});
  WallTime last = record.quiet_since.value_or(record.opened_at);
  if (found != seen_.rejecting_nodes.end()) last = std::max(last, found->second.rejections.back().wall);
  set(record.quiet_since, std::optional(last));
  if (!admitted_since(seen_.world, record.key, last)) return record.healthy_since.reset();
  if (!record.healthy_since) record.healthy_since = moment_of(now_);
}

/// Whoever reports on the device now has said so itself.
/// Each word once: its wall time may be one that the clock, set back since, has yet to come to.
void IncidentTurn::note_called_bad(DeviceRecord& record, const Moment& word) {
  if (word.mono <= record.called_bad_word) return;
  record.called_bad_word = word.mono;
  const auto at = std::min(word.wall, now_.wall);
  if (at <= record.called_bad_at) return;
  set(record.called_bad_at, at);
  const auto reporter = seen_.world.reporter_of(record.key);
  if (reporter && !began_after(reporter->began, at)) note_start(record, *reporter);
  if (record.reporter_since && !began_after(*record.reporter_since, at)) {
    record.reporter.clear();
    record.reporter_since.reset();
  }
  if (record.booted_at && *record.booted_at > at) return;
  record.booted_at.reset();
  const auto* node = seen_.world.node_under(record.key);
  if (node != nullptr) record.boot_id = node->boot_id;
}

/// What it called healthy it had forgotten; but an operator's word has ended with it all the same.
void IncidentTurn::forget_healthy(DeviceRecord& record) {
  if (record.acknowledged == Acknowledged::No) record.healthy_between = false;
}

/// Who reports on it began before it was last called bad.
void IncidentTurn::note_start(DeviceRecord& record, const Reporter& reporter) {
  set(record.reporter_start, reporter.start ? std::optional(reporter.newest) : std::nullopt);
}

/// Whether who reports on the device, or its node, has begun anew since it was called bad: NVIDIA's and Habana's
/// drivers begin by calling every device healthy.
void IncidentTurn::look_at_reporter(DeviceRecord& record) {
  const auto* state = seen_.world.tracker().find(record.key);
  if (state != nullptr && state->called_bad_at) note_called_bad(record, *state->called_bad_at);
  const auto reporter = seen_.world.reporter_of(record.key);
  record.knows_reporter = reporter.has_value();
  const bool anew = reporter && may_have_forgotten(*reporter, last_word_of(record));
  // Once: data that went back show an earlier start for a while.
  const bool is_noted = record.reporter_start.has_value();
  if (reporter && !is_noted && !anew && !began_after(reporter->began, record.called_bad_at)) {
    note_start(record, *reporter);
  }
  // A node's clock that is behind tells a start before the word that it came after.
  const auto began = anew ? std::max(reporter->began, record.called_bad_at) : WallTime();
  // A clock that was set back has yet to come to a start: that is taken for now, once.
  const bool is_later = anew && record.reporter_since && *record.reporter_since < began;
  if (anew && (!record.reporter_since || (is_later && began <= now_.wall))) {
    set(record.reporter, reporter->name);
    set(record.reporter_since, std::optional(std::min(began, now_.wall)));
    forget_healthy(record);
  }
  const auto* node = seen_.world.node_under(record.key);
  if (node == nullptr || node->boot_id.empty()) return;
  if (record.boot_id.empty()) set(record.boot_id, node->boot_id);
  // Data that went back show an earlier boot for a while: that was none.
  if (node->boot_id == record.boot_id) return set(record.booted_at, std::optional<WallTime>());
  if (record.booted_at) return;
  set(record.booted_at, std::optional(now_.wall));
  forget_healthy(record);
}

void IncidentTurn::look_at_evidence(DeviceRecord& record) {
  if (is_rejecting_node(record.key)) return look_at_admission(record);
  const auto driver = seen_.world.inventory().tainted_by_driver(record.key);
  if (driver == true && (!record.driver_tainted || record.driver_untainted_at))
    note_called_bad(record, moment_of(now_));
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
  const bool tainted = driver == true || tainted_.contains(record.key);
  if (tainted) {
    set(record.driver_tainted, true);
    set(record.driver_untainted_at, std::optional<WallTime>());
  } else if (!driver) {
    // A driver that comes back has forgotten what it knew: that it says nothing then is no evidence.
    set(record.driver_tainted, false);
    set(record.driver_untainted_at, std::optional<WallTime>());
  } else if (record.driver_tainted && seen_.world.inventory().has_taint(record.key, record.taint_key)) {
    // A later word of less weight is written over the fault, which is not taken back by that.
    set(record.driver_untainted_at, std::optional<WallTime>());
  } else if (record.driver_tainted && !record.driver_untainted_at) {
    set(record.driver_untainted_at, std::optional(now_.wall));
  }
  if (healthy) {
    if (!record.healthy_since) record.healthy_since = moment_of(now_);
    record.healthy_between = true;
    if (!record.called_healthy_at) set(record.called_healthy_at, std::optional(now_.wall));
  } else {
    record.healthy_since.reset();
  }
  if (tainted || (state != nullptr && state->health == k8s::Health::Unhealthy)) {
    set(record.called_healthy_at, std::optional<WallTime>());
  }
  const bool quiet = !not_healthy && !tainted;
  if (quiet && !record.quiet_since) set(record.quiet_since, std::optional(now_.wall));
  if (quiet) return;
  set(record.quiet_since, std::optional<WallTime>());
  look_at_cure(record);
}

/// A device that is still bad `healthyFor` after a boot was not cured by it.
void IncidentTurn::look_at_cure(DeviceRecord& record) {
  const auto* rules = rules_of(record, seen_.policy);
  const auto* node = seen_.world.node_under(record.key);
  if (!record.booted_at || rules == nullptr || node == nullptr) return;
  if (now_.wall < *record.booted_at + rules->healthy_for) return wake(*record.booted_at + rules->healthy_for);
  set(record.booted_at, std::optional<WallTime>());
  set(record.boot_id, node->boot_id);
}

void IncidentTurn::look_at_presence(DeviceRecord& record) {
  const auto& world = seen_.world;
  const auto* state = world.tracker().find(record.key);
  const bool held = state != nullptr && !state->holders.empty();
  // A plugin's devices have no names while nobody holds them: their node stands for them.
  const bool known =
      record.key.source == DeviceKey::Source::Plugin
          ? world.node(record.key.place) != nullptr
          : world.inventory().published(record.key) != nullptr || world.inventory().is_contested(record.key);
  if (held || known) return set(record.absent_since, std::optional<WallTime>());
  if (!record.absent_since) set(record.absent_since, std::optional(now_.wall));
  if (!is_long_absent(record, world, now_.wall)) return wake(*record.absent_since + absence_of(world, record));
  remove_rule(record);
}

/// A policy that enforces and no longer asks for rules takes its rule back.
void IncidentTurn::look_at_policy(DeviceRecord& record) {
  const auto* policy = policy_of(record, seen_.policy);
  if (policy == nullptr || makes_rules(*policy) || effective_mode(policy, seen_.policy) != Mode::Enforce) return;
  if (record.acknowledged == Acknowledged::No) remove_rule(record);
}

/// The rule goes, the incident stays: that we remove it is written down first, or the process after us would take its
/// absence for an operator's word.
void IncidentTurn::remove_rule(DeviceRecord& record) {
  if (record.rule_uid.empty() || record.is_removing()) return;
  record.removing = true;
  changed();
  record.closed_revision = incidents_.revision_;
}

void IncidentTurn::repair_times(DeviceRecord& record) {
  bool repaired = false;
  const auto repair = [&](auto& time, WallTime latest) { repaired = pull_back(time, latest) || repaired; };
  repair(record.since, now_.wall);
  repair(record.opened_at, now_.wall);
  repair(record.called_bad_at, now_.wall);
  repair(record.reporter_since, now_.wall);
  repair(record.called_healthy_at, now_.wall);
  repair(record.booted_at, now_.wall);
  repair(record.quiet_since, now_.wall);
  repair(record.driver_untainted_at, now_.wall);
  repair(record.absent_since, now_.wall);
  repair(record.penalty_at, now_.wall);
  repair(record.closed_at, now_.wall);
  repair(record.probation_until, now_.wall + kProbation);
  if (repaired) changed();
}

void IncidentTurn::close(DeviceRecord& record, const Recovery& recovery) {
  record.open = false;
  record.closed_at = now_.wall;
  record.closed_because = recovery.why;
  // From here on the absence of our rule is our own doing, also for the process after us.
  if (!record.rule_uid.empty() && record.acknowledged != Acknowledged::Changed) record.removing = true;
  if (recovery.on_probation) {
    record.probation_until = now_.wall + kProbation;
    wake(*record.probation_until);
  }
  changed();
  record.closed_revision = incidents_.revision_;
}

/// The node was made anew under its name, and nothing says that the device is the same: undecided while its driver does
/// not publish it.
bool IncidentTurn::is_other_host(DeviceRecord& record) {
  const bool is_dra = record.key.source == DeviceKey::Source::Dra;
  if (!is_dra && names_hardware(record.key)) return false;
  const auto* node = seen_.world.node_under(record.key);
  if (node == nullptr || node->meta.uid == record.host_uid) return false;
  if (is_dra && !record.host_uid.empty() && seen_.world.inventory().published(record.key) == nullptr) return false;
  bool same = record.host_uid.empty() || names_hardware(record.key);
  if (is_dra && !record.identity.empty()) {
    const auto identity = seen_.world.inventory().identity_of(record.key, record.identity_attribute);
    same = same || (identity && identity->value == record.identity);
  }
  if (!same) return true;
  set(record.host_uid, node->meta.uid);
  return false;
}

/// What was known of the place is of another device; only what we made there is still to be removed.
void IncidentTurn::start_clean(const DeviceRecord& old, DeviceRecord fresh, std::string why) {
  fresh.policy = old.policy;
  fresh.open = false;
  fresh.closed_at = now_.wall;
  fresh.closed_because = std::move(why);
  fresh.was_tainted = old.was_tainted;
  fresh.rule_uid = old.rule_uid;
  fresh.removing = !old.rule_uid.empty();
  fresh.node_tainted = old.node_tainted;
  fresh.node_uid = old.node_uid;
  fresh.host_uid = old.host_uid;
  fresh.host = old.host;
  fresh.knows_rule = true;
  fresh.closed_revision = incidents_.revision_ + 1;
  incidents_.records_.insert_or_assign(old.key, std::move(fresh));
}

/// The history of a device with an identity waits for it to turn up again; that of another is gone with its node.
void IncidentTurn::leave_host(const DeviceRecord& record) {
  DeviceRecord old = record;
  if (old.open || old.node_tainted || !old.rule_uid.empty()) {
    start_clean(old, take_history(old.key, no_identity()), "its node was recreated under its name");
    incidents_.records_.find(old.key)->second.host_uid = seen_.world.node_under(old.key)->meta.uid;
  } else {
    incidents_.records_.erase(old.key);
  }
  if (!old.identity.empty()) depart(std::move(old));
  changed();
}

/// Another card sits in the place: it starts clean, and the old one's history waits for it to turn up again.
void IncidentTurn::retire(DeviceRecord& record) {
  DeviceRecord old = record;
  const auto identity = seen_.world.inventory().identity_of(old.key, old.identity_attribute);
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
