#include "domain/incidents/incident_turn.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/cluster/node_departure.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"
#include "domain/history/card_penalty.h"
#include "domain/incidents/card_memory.h"
#include "domain/incidents/node_case.h"
#include "domain/incidents/suspect_watch.h"

namespace dhc {

namespace {

/// Whether what is remembered is still what the policy names by this key: a value that changes every second is not
/// written down each time.
bool is_same_fault(const k8s::Taint& remembered, const AffectedPod& affected) {
  return remembered.key == affected.taint.key && !remembered.effect.empty() &&
         fits_any(affected.policy->match.device_taints, remembered);
}

constexpr std::size_t kHistory = 10;
constexpr std::size_t kReasonLimit = 120;
constexpr std::size_t kLosses = 10;
constexpr std::size_t kHoldersOfLoss = 20;

/// Whether a policy has this kind of device tainted at all.
bool taints(const DevicePolicy& policy, const DeviceKey& key, const World& world) {
  return needs_node_taint(world, key) ? policy.taint && policy.taint->node : makes_rules(policy);
}

/// Which of two policies speaks for a device that several pods hold: one that taints before one that does not, one that
/// enforces before one that observes, then the one that comes first.
bool speaks_before(const DevicePolicy& a, const DevicePolicy& b, const DeviceKey& key, const World& world) {
  const auto rank = [&](const DevicePolicy& policy) {
    return (taints(policy, key, world) ? 0 : 2) + (policy.mode == Mode::Enforce ? 0 : 1);
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.name < b.name;
}

/// Whether an incident that began at `since` has ended, as another leader may have found meanwhile.
bool ended_since(const DeviceRecord* record, WallTime since) {
  const auto* end = record == nullptr ? nullptr : record->incident.end();
  return end != nullptr && end->at >= since;
}

}  // namespace

void IncidentTurn::collect_affected() {
  for_each_affected(seen_.affected_pods, seen_.in_focus, [&](const AffectedPod& affected) { collect(affected); });
}

void IncidentTurn::collect(const AffectedPod& affected) {
  if (affected.held_device->ambiguous) {
    // Any of them may be the bad one: none of them is quiet.
    affected_devices_.insert(affected.held_device->candidates.begin(), affected.held_device->candidates.end());
    called_bad_.insert(affected.held_device->candidates.begin(), affected.held_device->candidates.end());
    return;
  }
  affected_devices_.insert(affected.key);
  if (!affected.unknown_now) called_bad_.insert(affected.key);
  if (affected.forgotten) forgotten_.insert(affected.key);
  if (affected.source == SignalSource::Taint && !affected.unknown_now) tainted_.insert(affected.key);
  // One report is enough on probation; else the policy's window must have passed.
  const auto probation = probation_of(affected.key);
  const bool rolls = affected.rolls_until && now_.mono < *affected.rolls_until;
  const bool relapse = probation && !affected.unknown_now && now_.wall < *probation && !rolls;
  if (!affected.open && !relapse) return;
  auto& speaker = speaking_[affected.key];
  if (speaker == nullptr || speaks_before(*affected.policy, *speaker->policy, affected.key, seen_.world))
    speaker = &affected;
}

/// Nobody is evicted twice for the same device in an hour, also by a process after this one: the newest are written
/// down.
void IncidentTurn::note_losses() {
  std::map<DeviceKey, std::vector<OwnerLoss>> by_device;
  const auto note = [&](const DeviceKey& key, const TimedLoss& timed) {
    if (now_.wall - timed.loss.at < kLossMemory) by_device[key].push_back(timed.loss);
  };
  if (looks_at_all()) {
    for (const auto& [who, timed] : seen_.losses.all()) note(who.second, timed);
  } else {
    for (const auto& key : seen_.focus->devices) {
      for (const auto* timed : seen_.losses.of(key)) note(key, *timed);
    }
  }
  // A device that may have been the bad one among several has no incident of its own.
  for (const auto& [key, losses] : by_device) {
    if (incidents_.records_.contains(key)) continue;
    const auto identity = seen_.world.inventory().identity_of(key, {}).value_or(no_identity());
    incidents_.records_.emplace(key, take_history(key, identity));
  }
  for_each_record([&](const DeviceKey& key, DeviceRecord& record) {
    const auto found = by_device.find(key);
    if (found == by_device.end()) {
      record.past.losses.clear();  // that they are too old by now need not be written
      return;
    }
    auto& losses = found->second;
    std::ranges::sort(losses, std::greater(), [](const OwnerLoss& loss) { return std::tie(loss.at, loss.owner_uid); });
    if (losses.size() > kLosses) losses.resize(kLosses);
    for (auto& loss : losses) {
      // A holder that is left out counts as the replacement: it is not evicted, which is the safe side.
      if (loss.holders.size() > kHoldersOfLoss) loss.holders.resize(kHoldersOfLoss);
    }
    if (std::ranges::mismatch(losses, record.past.losses).in1 == losses.end()) {
      record.past.losses = std::move(losses);
    } else {
      set(record.past.losses, std::move(losses));
    }
  });
}

/// Our rules of which nothing is remembered: the state was lost, and the rule itself says enough to go on.
void IncidentTurn::adopt_rules() {
  const auto may_be_adopted = [&](const DeviceKey& key) {
    return !incidents_.records_.contains(key) && seen_.world.inventory().rule_named_for(key) != nullptr;
  };
  if (seen_.focus != nullptr && !seen_.focus->all && std::ranges::none_of(seen_.focus->devices, may_be_adopted)) return;
  for (const auto& [uid, rule] : seen_.world.inventory().rules()) {
    if (!is_our_rule(rule) || rule.meta.deletion || changed_by_other(rule) || same_card_as(rule)) continue;
    const auto key = device_of(rule);
    if (incidents_.records_.contains(*key)) continue;
    const auto text = [&](std::string_view name) {
      return std::string(k8s::find(rule.meta.annotations, name).value_or(std::string_view()));
    };
    DeviceRecord record;
    record.key = *key;
    record.card.value = text(kIdentityAnnotation);
    record.card.attribute = text(kIdentityAttributeAnnotation);
    record.past.policy = text(kPolicyAnnotation);
    IncidentFacts facts;
    facts.opened_at = rule.meta.creation ? seen_.world.ours(*rule.meta.creation) : now_.wall;
    facts.since = parse_rfc3339(text(kSinceAnnotation)).value_or(facts.opened_at);
    facts.called_bad_at = facts.opened_at;
    facts.was_tainted = true;
    record.past.count = std::max<std::int64_t>(incidents_on(rule), 1);
    record.past.penalty = 1;
    record.past.penalty_at = facts.opened_at;
    record.past.incidents.push_back(
        {.at = facts.opened_at, .reason = "adopted from DeviceTaintRule " + rule.meta.name});
    record.incident.begin(std::move(facts), record.past.is_lemon);
    record.ours.rule.see(rule.meta.uid);
    record.ours.knows_rule = true;
    incidents_.records_.emplace(*key, std::move(record));
    changed();
  }
}

/// A node with our taint of which nothing is remembered: it is held as long as a device without evidence is.
void IncidentTurn::adopt_nodes() {
  std::optional<std::set<std::string>> known;
  const auto look = [&](const std::string& name, const k8s::Node& node) {
    const auto at = node.taints.empty() ? std::nullopt : our_taint_on(node);
    if (!at || node.taints[*at] != node_taint() || incidents_.untainting_.contains(name)) return;
    if (!known) known = nodes_with_our_taint();
    if (!known->contains(name)) adopt(name);
  };
  if (looks_at_all()) {
    for (const auto& [name, node] : seen_.world.nodes()) look(name, node);
    return;
  }
  for (const auto& name : seen_.focus->nodes) {
    if (const auto* node = seen_.world.node(name)) look(name, *node);
  }
}

/// Nodes whose taint a device asks for.
std::set<std::string> IncidentTurn::nodes_with_our_taint() const {
  std::set<std::string> known;
  for (const auto& [key, record] : incidents_.records_) {
    if (record.ours.node.stands() || (record.is_open() && needs_node_taint(seen_.world, key))) {
      known.insert(seen_.world.node_of(key));
    }
  }
  return known;
}

void IncidentTurn::adopt(const std::string& node) {
  auto& record = incidents_.records_[DeviceKey::node_taint(node)];
  record.key = DeviceKey::node_taint(node);
  record.past.count = 1;
  record.past.penalty = 1;
  record.past.penalty_at = now_.wall;
  record.past.incidents = {{.at = now_.wall, .reason = "adopted from the node's taint"}};
  record.incident.begin({.since = now_.wall,
                         .opened_at = now_.wall,
                         .taint = {},
                         .called_bad_at = now_.wall,
                         .reporter = {},
                         .evidence = {}},
                        record.past.is_lemon);
  changed();
}

/// Of a device without an incident of its report nothing is known that could be forgotten, if none can open.
void IncidentTurn::believe() {
  if (looks_at_all()) {
    incidents_.believed_.clear();
    for (const auto& key : seen_.world.tracker().not_healthy()) believe(key);
    return;
  }
  for (const auto& key : seen_.focus->devices) {
    incidents_.believed_.erase(key);
    if (seen_.world.tracker().not_healthy().contains(key)) believe(key);
  }
}

void IncidentTurn::believe(const DeviceKey& key) {
  const auto* state = seen_.world.tracker().find(key);
  if (!state->forgotten || !state->unhealthy_since) return;
  const auto* record = incidents_.find(key);
  const auto* facts = record == nullptr ? nullptr : record->incident.facts();
  if (facts != nullptr && !is_drivers_own(facts->source)) return;
  if (ended_since(record, state->unhealthy_since->wall) || !affected_devices_.contains(key) || is_with_suspects(key) ||
      seen_.brake.doubts(key, seen_.world.node_of(key))) {
    incidents_.believed_.insert(key);
  }
}

/// Until when one report of the device is enough, or of another as which its card is offered; none: it never is.
std::optional<WallTime> IncidentTurn::probation_of(const DeviceKey& key) const {
  const auto* record = incidents_.find(key);
  auto until = record == nullptr ? std::nullopt : record->incident.probation_until();
  for (const auto* other : incidents_.replicas_of(key)) until = std::max(until, other->incident.probation_until());
  return until;
}

void IncidentTurn::open_or_continue(const DeviceKey& key, const AffectedPod& affected) {
  auto found = incidents_.records_.find(key);
  if (found != incidents_.records_.end() && is_other_card(found->second)) {
    retire(found->second);
    found = incidents_.records_.find(key);
  }
  // A blink within healthyFor is the same break, so that a device that flaps does not become a lemon in a minute; but
  // an operator's word ends with the first Healthy.
  const auto goes_on = [&](const DeviceRecord& record) {
    const auto* facts = record.incident.facts();
    if (facts == nullptr || !facts->evidence.was_well()) return facts != nullptr;
    return !record.is_acknowledged() && now_.wall - facts->opened_at < affected.policy->recover.healthy_for;
  };
  if (found != incidents_.records_.end() && goes_on(found->second)) {
    auto& facts = *found->second.incident.facts();
    facts.evidence.take(EvidenceEvent::TakenBack, now_);
    // What the kubelet has called bad once, it may call healthy by mistake later.
    if (is_drivers_own(facts.source)) set(facts.source, affected.source);
    if (!affected.taint.key.empty() && !is_same_fault(facts.taint, affected)) set(facts.taint, affected.taint);
    if (is_drivers_own(affected.source) && !affected.unknown_now) note_called_bad(found->second, affected.since);
    return choose_policy(found->second, affected);
  }
  // What goes wrong under a workload that breaks devices says nothing about the device either.
  if (is_with_suspects(key)) return;
  // A mass fault says nothing about the device: it counts when the brake is released.
  // A Healthy that is not believed takes nothing back.
  const bool is_unknown =
      affected.unknown_now && (!affected.forgotten || ended_since(incidents_.find(key), affected.since.wall));
  if (is_unknown || seen_.brake.doubts(key, affected.pod().node_name)) return;
  if (found == incidents_.records_.end()) {
    const auto identity =
        seen_.world.inventory().identity_of(key, affected.policy->recover.identity_attribute).value_or(no_identity());
    found = incidents_.records_.emplace(key, take_history(key, identity)).first;
  }
  begin(found->second, {.policy = *affected.policy,
                        .since = affected.since.wall,
                        .source = affected.source,
                        .taint = affected.taint,
                        .said = affected.said});
}

/// A node that only kills what it is given, where the policy has it tainted. Rejections of an incident that has ended
/// open no other; on probation one new rejection is enough.
void IncidentTurn::open_rejecting(const DeviceKey& key, const RejectingNode& rejecting) {
  const auto& rules = *rejecting.policy->job_retry;
  if (!rules.taints_rejecting_node) return;
  auto found = incidents_.records_.find(key);
  if (found != incidents_.records_.end() && found->second.is_open()) return;
  auto enough = rules.rejections;
  std::int64_t count = 0;
  const bool is_known = found != incidents_.records_.end();
  const auto probation = is_known ? found->second.incident.probation_until() : std::nullopt;
  const auto* end = is_known ? found->second.incident.end() : nullptr;
  if (probation && now_.wall < *probation) enough = 1;
  for (const auto& rejection : rejecting.rejections) {
    if (end == nullptr || rejection.wall > end->at) ++count;
  }
  // When many nodes reject at once it is not the nodes, also not after the brake is released, unless one still does.
  if (now_.mono - rejecting.rejections.back().mono >= seen_.policy.limits.brake_within) return;
  if (count < enough || seen_.brake.holding(key, key.place) != nullptr) return;
  if (const auto until = rolls_until(seen_.world, key, rejecting); until && now_.wall < *until) return;
  if (!is_known) {
    DeviceRecord record;
    record.key = key;
    found = incidents_.records_.emplace(key, std::move(record)).first;
  }
  begin(found->second, {.policy = *rejecting.policy,
                        .since = rejecting.rejections.front().wall,
                        .said = "its kubelet rejected " + std::to_string(rejecting.rejections.size()) + " pods"});
}

/// The policy that opened an incident keeps it, unless it is gone or one that taints comes along.
void IncidentTurn::choose_policy(DeviceRecord& record, const AffectedPod& affected) {
  const auto* present = policy_of(record, seen_.policy);
  if (present == affected.policy) return;
  if (present != nullptr && !speaks_before(*affected.policy, *present, record.key, seen_.world)) return;
  set(record.past.policy, affected.policy->name);
}

bool IncidentTurn::is_other_card(const DeviceRecord& record) const {
  return seen_.world.inventory().is_other_card(record.key, known_card(record, &seen_.policy));
}

/// The record of a device that is met for the first time in this place; a card that moved brings its history along.
DeviceRecord IncidentTurn::take_history(const DeviceKey& key, const DeviceIdentity& identity) {
  DeviceRecord record;
  if (const auto old = incidents_.departed_.find(identity_key(key, identity.value));
      !identity.value.empty() && old != incidents_.departed_.end()) {
    record = std::move(old->second);
    record.card.host.reset();  // of the pool that it has left
    incidents_.departed_.erase(old);
  }
  record.key = key;
  record.card.value = identity.value;
  record.card.attribute = identity.attribute;
  const bool is_named = !identity.value.empty();
  auto beside = is_named ? seen_.world.inventory().marks_beside(key, identity.attribute) : std::nullopt;
  record.card.beside = std::move(beside).value_or(CardMarks());
  return record;
}

/// A card that a device plugin offers as several devices has one history: the one of them that broke last has it whole.
/// What is remembered of a node that was made anew is of another card.
IncidentTurn::Replicas IncidentTurn::take_past_of_replicas(DeviceRecord& record) {
  Replicas known;
  const auto* node = seen_.world.node_under(record.key);
  const auto broke_at = [](const DeviceRecord& one) {
    return one.past.incidents.empty() ? WallTime::min() : one.past.incidents.back().at;
  };
  const DeviceRecord* last = &record;
  for (const auto* other : incidents_.replicas_of(record.key)) {
    const auto& host = other->card.host_uid;
    if (!names_hardware(other->key) && node != nullptr && !host.empty() && host != node->meta.uid) continue;
    known.is_same_break = known.is_same_break || is_same_break(other->incident, now_.wall);
    const auto* facts = other->incident.facts();
    known.is_broken = known.is_broken || (facts != nullptr && !facts->evidence.was_well());
    if (broke_at(*other) > broke_at(*last)) last = other;
  }
  if (last == &record) return known;
  auto losses = std::move(record.past.losses);
  const auto last_word = record.past.last_word;
  record.past = last->past;
  record.past.losses = std::move(losses);
  record.past.last_word = last_word;
  return known;
}

/// A card that breaks by one of its devices after the other breaks as often as a device that does: what has just been
/// counted of this one quarantines it where the card's devices together are above the limit. Of one fault that takes
/// several of them the first is judged so: the others have not broken the card again.
void IncidentTurn::judge_card(DeviceRecord& record, const Onset& onset) {
  auto& past = record.past;
  if (past.is_lemon || !record.key.is_device() || !taints(onset.policy, record.key, seen_.world)) return;
  const auto others = others_of_card(incidents_, record, seen_.world, seen_.policy);
  if (others.empty()) return;
  // Where a policy only observes no taint of ours keeps pods off the one that is quarantined for the card.
  auto acted_on = others;
  const auto mode = mode_on(&onset.policy, seen_.policy, seen_.world, record.key);
  std::erase_if(acted_on, [&](const DeviceRecord* other) {
    const auto* policy = policy_of(*other, seen_.policy);
    return (other->ours.any() ? effective_mode(policy, seen_.policy)
                              : mode_on(policy, seen_.policy, seen_.world, other->key)) < mode;
  });
  const auto& rules = onset.policy.recover;
  if (is_fault_of_another(past, pasts_of(acted_on), rules, now_.wall)) return;
  past.is_lemon = card_penalty(past, pasts_of(others), rules, now_.wall) > rules.quarantine_above;
}

void IncidentTurn::begin(DeviceRecord& record, const Onset& onset) {
  const auto replicas = take_past_of_replicas(record);
  auto& past = record.past;
  past.policy = onset.policy.name;
  const auto* node = seen_.world.node_under(record.key);
  // Whoever works on the node makes devices look bad that are not. And a device that is given back bad and found bad
  // has not broken again.
  const bool without_penalty =
      (node != nullptr && why_leaving(*node)) || is_same_break(record.incident, now_.wall) || replicas.is_same_break;
  // The card of a replica that is bad already has not broken again.
  if (!replicas.is_broken || past.incidents.empty()) {
    if (without_penalty) {
      count_without_penalty(past);
    } else {
      // A node that rejects pods is no card: it is held as long as it does, or for the hold.
      const bool may_be_lemon = record.key.is_device() && taints(onset.policy, record.key, seen_.world);
      count_incident(past, onset.policy.recover, now_.wall, may_be_lemon ? Quarantine::AboveLimit : Quarantine::Never);
    }
    past.incidents.push_back(
        {.at = now_.wall, .reason = printable_cut(onset.said, kReasonLimit), .without_penalty = without_penalty});
    if (past.incidents.size() > kHistory) past.incidents.pop_front();
    if (!without_penalty) judge_card(record, onset);
  }
  IncidentFacts facts{.since = onset.since,
                      .opened_at = now_.wall,
                      .source = onset.source,
                      .taint = onset.taint,
                      .called_bad_at = onset.since,
                      .reporter = {},
                      .evidence = {}};
  if (seen_.world.inventory().tainted_by_driver(record.key) == true) facts.driver_taint.emplace();
  if (node != nullptr) facts.reporter.boot_id = node->boot_id;
  record.incident.begin(std::move(facts), past.is_lemon);
  const bool is_dra = record.key.source == DeviceKey::Source::Dra;
  if (node != nullptr && (is_dra || !names_hardware(record.key))) record.card.host_uid = node->meta.uid;
  // The rule of the incident before may still be there, which serves this one, or be on its way out.
  const bool is_gone = seen_.world.inventory().rule_named_for(record.key) == nullptr;
  record.ours.rule.take(is_gone ? MarkEvent::Lost : MarkEvent::Kept);
  record.ours.node.take(MarkEvent::Kept);
  record.ours.let_go.clear();
  record.ours.knows_rule = true;
  incidents_.opened_.insert(record.key);
  changed();
}

bool IncidentTurn::is_with_suspects(const DeviceKey& key) const {
  return seen_.suspects != nullptr && dhc::is_with_suspects(*seen_.suspects, key, seen_.world);
}

}  // namespace dhc
