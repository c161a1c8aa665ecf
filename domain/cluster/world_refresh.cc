// The half of World that draws conclusions: what the pods hold, what the nodes tell of their plugins, how each device
// is.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/wake.h"
#include "domain/cluster/world.h"
#include "domain/contract/names.h"

namespace dhc {

const k8s::Condition* our_condition(const k8s::Pod& pod) {
  const auto found = std::ranges::find(pod.conditions, kConditionType, &k8s::Condition::type);
  return found == pod.conditions.end() ? nullptr : &*found;
}

void World::refresh(const Now& now) {
  for (const auto& [name, before] : std::exchange(touched_classes_, {})) {
    if (driver_of_class(name) != before) touched_.everything();
  }
  if (const auto at = cards_.next_change_at(); at && *at <= now.mono) touched_.everything();
  // A plugin's Healthy becomes believable by time alone: its devices are looked at again until that has happened.
  dirty_nodes_.insert(settling_.begin(), settling_.end());
  while (!dirty_pods_.empty()) {
    const SharedText uid = std::move(dirty_pods_.extract(dirty_pods_.begin()).value());
    refresh_pod(uid, now);
  }
  settle_pools(now);
  while (!dirty_nodes_.empty()) {
    const SharedText name = std::move(dirty_nodes_.extract(dirty_nodes_.begin()).value());
    refresh_node(name, now);
  }
  turned_nodes_.clear();
  cards_.settle(now);
  for (const auto& [key, since] : doubted_) dirty_devices_.insert(key);
  for (const auto& [key, standing] : standing_) dirty_devices_.insert(key);
  for (const auto& [key, since] : new_cards_) dirty_devices_.insert(key);
  heard_again_ = false;
  while (!dirty_devices_.empty()) {
    const DeviceKey key = std::move(dirty_devices_.extract(dirty_devices_.begin()).value());
    refresh_device(key, now);
  }
  Wake of_standing;
  for (const auto& [key, standing] : standing_) of_standing.note(standing.since + kOwnWord);
  standing_due_ = of_standing.at();
  Wake of_cards;
  for (const auto& [key, since] : new_cards_) of_cards.note(since + kOwnWord);
  new_cards_due_ = of_cards.at();
  driver_taints_.forget(now, [this](const DeviceKey& key) {
    const auto* state = tracker_.find(key);
    return state != nullptr && !state->holders.empty();
  });
  // That a driver speaks at all is evidence about each of its devices.
  const auto first_words = speakers_.first_words() + driver_taints_.spoken();
  if (std::exchange(first_words_, first_words) != first_words) touched_.everything();
  held_cards_.settle(*this);
  room_.settle(inventory_, [this](const DeviceKey& key) { return is_allocated(key); });
  follow_kept_taints(now);
  for (auto& key : driver_taints_.lapsed(now)) {
    touched_.pool({key.scope, key.place});  // also for who waits for a place there
    touched_.device(std::move(key));
  }
  for (auto& key : tracker_.forget(now)) touched_.device(std::move(key));
  follow_ailing(now);
  forget_endings(now);
  lost_pods_.forget(now);
}

void World::keep_deallocated(const PodRecord& record, Resolution& resolved) const {
  if (record.pod.node_name.empty()) return;
  std::set<std::string> kept;
  std::vector<HeldDevice> missing;
  for (const auto& old : record.held_devices) {
    const auto* named = old.claim.empty() ? nullptr : claim(old.claim);
    if (named == nullptr || named->meta.uid != old.claim_uid) continue;
    if (named->allocated && !resolved.behind.contains(old.claim)) continue;
    kept.insert(old.claim);
    if (find_held_device(resolved.held_devices, old.key) == nullptr) missing.push_back(old);
  }
  std::ranges::move(missing, std::back_inserter(resolved.held_devices));
  std::ranges::sort(resolved.held_devices, {}, &HeldDevice::key);
  // What was joined while the claim was known needs no word about it.
  erase_if(resolved.doubts, [&](const ReportDoubt& doubt) {
    return doubt.kind == ReportDoubt::Kind::ClaimBehind && kept.contains(doubt.claim);
  });
}

void World::refresh_pod(const SharedText& uid, const Now& now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  auto& record = found->second;
  touch(record.pod);
  if (!is_live(record.pod)) note_ending(record, now);
  note_failure(record, now);
  record.was_live = is_live(record.pod);
  auto resolved = resolve_held_devices(
      record.pod, [this](std::string_view ns, std::string_view name) { return claim(claim_key(ns, name)); });
  if (is_live(record.pod)) {
    keep_deallocated(record, resolved);
  } else {
    // The kubelet drops the field of an ended DRA pod, and keeps a plugin's for ever: neither is evidence (seen
    // on 1.37.1).
    for (auto& held_device : resolved.held_devices) held_device.reported.reset();
    resolved.doubts.clear();
  }
  std::vector<DeviceKey> fresh;
  for (auto& held_device : resolved.held_devices) {
    const auto* old = find_held_device(record.held_devices, held_device.key);
    held_device.seen_at = old == nullptr ? moment_of(now) : old->seen_at;
    if (old == nullptr || old->containers != held_device.containers) fresh.push_back(held_device.key);
  }
  if (has_disputed_device(record.held_devices) || has_disputed_device(resolved.held_devices)) {
    pools_may_be_stale_ = true;
  }
  for (const auto& old : record.held_devices) {
    dirty_devices_.insert(old.key);
    touched_.device(old.key);
    if (find_held_device(resolved.held_devices, old.key) == nullptr) remove_holder(old.key, uid, now);
  }
  const bool counts = record.pod.phase == k8s::PodPhase::Running && !record.pod.node_name.empty();
  auto heard = counts ? heard_of(record.pod, resolved.held_devices) : SlimVector<Heard>();
  // First the new: what goes on is held without a break.
  speakers_.add(record.pod.node_name, heard, now);
  speakers_.remove(record.pod.node_name, record.heard);
  record.heard = std::move(heard);
  record.held_devices = std::move(resolved.held_devices);
  if (counts) note_admitted(record.pod);
  for (auto& doubt : resolved.doubts) {
    const auto known = std::ranges::find(record.doubts, doubt.why, &ReportDoubt::why);
    doubt.since = known == record.doubts.end() ? moment_of(now) : known->since;
  }
  record.doubts = std::move(resolved.doubts);
  if (record.doubts.empty()) {
    with_doubts_.erase(uid);
  } else {
    with_doubts_.insert(uid);
  }
  for (const auto& held_device : record.held_devices) {
    add_holder(held_device.key, uid);
    dirty_devices_.insert(held_device.key);
    touched_.device(held_device.key);
  }
  for (const auto& key : fresh) held_cards_.note_holder(key);
  if (!record.pod.node_name.empty()) dirty_nodes_.insert(record.pod.node_name);
}

void World::add_holder(const DeviceKey& key, const SharedText& uid) {
  tracker_.add_holder(key, uid);
  held_cards_.add(key);
}

void World::remove_holder(const DeviceKey& key, const SharedText& uid, const Now& now) {
  tracker_.remove_holder(key, uid, now);
  const auto* state = tracker_.find(key);
  if (state == nullptr || state->holders.empty()) {
    held_cards_.remove(key);
  } else {
    held_cards_.note_holder(key);
  }
}

void World::refresh_node(const SharedText& name, const Now& now) {
  touched_.node(name);
  std::map<std::string, HeldDevices, std::less<>> held;
  std::set<DeviceKey> counted;
  std::set<std::pair<std::string_view, std::string_view>> cards;  // into the pods
  for (const auto& uid : pods_on(name)) {
    const auto& record = pods_.at(uid);
    if (!is_live(record.pod)) continue;
    if (!record.pod.meta.deletion) {
      for (const auto& [resource, amount] : record.pod.requests)
        held[resource].requested += std::min(amount, kMostRequested);
    }
    for (const auto& held_device : record.held_devices) {
      if (held_device.key.source != DeviceKey::Source::Plugin || !counted.insert(held_device.key).second) continue;
      auto& count = held[held_device.key.scope];
      ++count.total;
      if (held_device.reported == k8s::Health::Unhealthy) ++count.unhealthy;
      const auto card = card_of_plugin_id(held_device.key.device);
      if (cards.emplace(held_device.key.scope, card.id).second) ++count.cards;
      count.replicas = std::max(count.replicas, card.replica + 1);
    }
  }
  auto& book = books_[name];
  // Where time alone makes a plugin's Healthy believable, its devices are looked at until it has.
  const bool is_other = book.update(node(name), held, now) || settling_.contains(name);
  if (is_other) held_cards_.note_node(name);
  room_.note_node(std::string(name), node(name), book);
  std::map<std::string, ListedCards> listed;
  for (const auto& [resource, entry] : book.resources()) listed.emplace(resource, entry.cards());
  if (node(name) == nullptr || turned_nodes_.contains(name)) cards_.forget_node(name);
  if (node(name) != nullptr) cards_.note_node(name, listed, now);
  if (is_other) dirty_devices_.insert(counted.begin(), counted.end());
  if (book.is_suspicious()) {
    suspicious_.insert(name);
  } else {
    suspicious_.erase(name);
  }
  if (book.next_change_at(now)) {
    settling_.insert(name);
  } else {
    settling_.erase(name);
  }
  if (node(name) != nullptr || !counted.empty()) return;
  books_.erase(name);
  if (pods_on(name).empty()) pods_on_.erase(name);
}

void World::note_other_word(Evidence& evidence, const HeldDevice& held_device, const SharedText& uid) {
  const auto& word = held_device.other_word;
  if (word.empty() || (!evidence.other_word.empty() && evidence.other_word < word)) return;
  if (word != evidence.other_word) {
    evidence.other_witnesses.clear();
    evidence.other_message = held_device.message;
  }
  evidence.other_word = word;
  evidence.other_message = std::min(evidence.other_message, held_device.message);
  evidence.other_witnesses.push_back(uid);
}

Evidence World::evidence_of(const DeviceKey& key, const DeviceState& state, const Now& now) const {
  Evidence evidence;
  if (const auto* incident = reported_incident(key)) evidence.remembered = incident->since;
  if (const auto* host = node_under(key)) evidence.boot_id = host->boot_id;
  std::vector<SharedText> silent;
  std::optional<std::string> name;  // most pods carry no condition of ours, and need none
  const auto told_of = [&](const PodRecord& record) -> const ConditionWords::Word* {
    if (!record.told || record.told->devices.empty()) return nullptr;
    if (!name) name = to_string(key);
    return record.word_of(*name);
  };
  for (const auto& uid : state.holders) {
    const auto* record = pod(uid);
    const auto* held_device = record == nullptr ? nullptr : find_held_device(record->held_devices, key);
    if (held_device == nullptr || !is_live(record->pod) || may_be_of_card_before(key, *held_device)) continue;
    bool is_witness = false;
    if (const auto* word = told_of(*record); word != nullptr && word->since && !is_drivers_own(word->source)) {
      if (!evidence.remembered || *word->since < *evidence.remembered) evidence.remembered = word->since;
      is_witness = true;
    }
    if (held_device->reported && record->readable) {
      auto health = *held_device->reported;
      evidence.says_healthy = evidence.says_healthy.value_or(true) && health == k8s::Health::Healthy;
      if (health == k8s::Health::Healthy) evidence.healthy_by.push_back(uid);
      if (health == k8s::Health::Healthy && key.source == DeviceKey::Source::Plugin) {
        const auto book = books_.find(key.place);
        if (book != books_.end() && !book->second.healthy_is_believable(key.scope, now)) health = k8s::Health::Unknown;
      }
      if (!evidence.health || health > *evidence.health) {
        evidence.health = health;
        evidence.message = held_device->message;
      }
      is_witness = is_witness || health == k8s::Health::Unhealthy;
      note_other_word(evidence, *held_device, uid);
    } else if (!held_device->reported) {
      silent.push_back(uid);
    }
    if (is_witness) evidence.witnesses.push_back(uid);
  }
  // It holds the very device that another holder calls Unhealthy now, and its kubelet never speaks of it: a sidecar's,
  // or a claim that no container names.
  if (evidence.health == k8s::Health::Unhealthy) std::ranges::move(silent, std::back_inserter(evidence.witnesses));
  return evidence;
}

void World::refresh_device(const DeviceKey& key, const Now& now) {
  look_at_card(key, now);
  const auto* state = tracker_.find(key);
  if (state == nullptr) {
    doubted_.erase(key);
    believed_.erase(key);
    standing_.erase(key);
    return;
  }
  const auto before = *state;
  const auto* word = tracker_.other_word_of(key);
  const auto word_before = word == nullptr ? std::nullopt : std::optional(*word);
  auto evidence = evidence_of(key, *state, now);
  if (evidence.health == k8s::Health::Unhealthy) believed_.erase(key);
  // What a pod's condition alone remembers comes before what a driver says that began anew: a new process weighs that
  // as the one before did, and gives a start that is told late the same time.
  const bool is_first_look = !state->seen_healthy && !state->unhealthy_since;
  bool is_told_alone = is_first_look && evidence.remembered && evidence.health == k8s::Health::Healthy;
  if (is_told_alone) {
    const auto reporter = reporter_of(key);
    if (reporter && may_have_forgotten(*reporter, {.called_bad_at = *evidence.remembered})) {
      evidence.health = k8s::Health::Unknown;
      is_told_alone = false;
    }
  }
  is_told_alone = is_told_alone && !has_reported_incident(key);
  if (evidence.health == k8s::Health::Healthy && is_forgotten(key, *state)) {
    doubted_.erase(key);
    evidence.forgotten = true;
    evidence.health = k8s::Health::Unknown;
    // Without its reporter's restart they would have heard what a pod before them heard, which may have ended by it.
    if (is_called_bad(key, *state)) std::ranges::move(evidence.healthy_by, std::back_inserter(evidence.witnesses));
  } else if (evidence.says_healthy == true &&
             (is_told_alone ? is_reporter_known(key) : may_be_forgotten(key, *state))) {
    const auto since = doubted_.try_emplace(key, now.mono).first;
    if (now.mono - since->second < settle_of(key)) {
      evidence.health = k8s::Health::Unknown;
      // Nothing opens by a memory that may be over, nor by what it is in doubt with: as if nobody spoke of it.
      if (is_told_alone) {
        evidence.health.reset();
        evidence.remembered.reset();
      }
    }
  } else {
    doubted_.erase(key);
  }
  tracker_.observe(key, evidence, now);
  // By what a pod's condition remembers it has been called bad: what its kubelet says now may be a driver's that
  // forgot.
  const bool remembers = !before.unhealthy_since && state->unhealthy_since;
  if (remembers && state->health != k8s::Health::Unhealthy) dirty_devices_.insert(key);
  look_at_standing(key, now);
  word = tracker_.other_word_of(key);
  const bool is_same_word = word == nullptr ? !word_before : word_before && *word == *word_before;
  if (before != *state || !is_same_word) touched_.device(key);
}

std::optional<MonoTime> World::next_change_at(const Now& now) const {
  Wake wake;
  wake.note_after(now.mono, views_.next_change_at(now));
  if (heard_again_ || ailing_due_ || !dirty_devices_.empty()) wake.note(now.mono + Millis(1));
  for (const auto& name : settling_) wake.note_after(now.mono, books_.at(name).next_change_at(now));
  for (const auto& [key, since] : doubted_) wake.note_after(now.mono, since + settle_of(key));
  for (const auto& [key, standing] : standing_) wake.note_after(now.mono, standing.since + kOwnWord);
  for (const auto& [key, since] : new_cards_) wake.note_after(now.mono, since + kOwnWord);
  for (const auto& [name, since] : left_pools_) wake.note_after(now.mono, since + kLongestUnknown);
  for (const auto& [name, since] : unpublished_pools_) wake.note_after(now.mono, since + kCardMemory);
  wake.note_after(now.mono, cards_.next_change_at());
  for (const auto& [key, at] : bare_) wake.note_after(now.mono, at);
  wake.note_after(now.mono, driver_taints_.next_lapse());
  return wake.at();
}

const PodRecord* World::pod(std::string_view uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

const SortedTexts& World::pods_on(std::string_view node) const {
  const auto found = pods_on_.find(node);
  return found == pods_on_.end() ? nobody_ : found->second;
}

const ResourceBook* World::resource_book(std::string_view node, std::string_view resource) const {
  const auto book = books_.find(node);
  if (book == books_.end()) return nullptr;
  const auto entry = book->second.resources().find(resource);
  return entry == book->second.resources().end() ? nullptr : &entry->second;
}

const k8s::ResourceClaim* World::claim(std::string_view key) const {
  const auto found = claims_.find(key);
  return found == claims_.end() ? nullptr : &found->second.claim;
}

const k8s::ResourceClaim* World::standing_claim(std::string_view key) const {
  const auto found = claims_.find(key);
  return found == claims_.end() || found->second.gone ? nullptr : &found->second.claim;
}

const ConditionSight* World::claim_condition(std::string_view claim, const DeviceKey& key,
                                             std::string_view type) const {
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return nullptr;
  const auto sight = found->second.sights.find({key, std::string(type)});
  return sight == found->second.sights.end() ? nullptr : &sight->second;
}

const SortedTexts& World::users_of(std::string_view claim) const {
  const auto found = claim_users_.find(claim);
  return found == claim_users_.end() ? nobody_ : found->second;
}

const k8s::Node* World::node(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

const k8s::Meta* World::namespace_of(std::string_view name) const {
  const auto found = namespaces_.find(name);
  return found == namespaces_.end() ? nullptr : &found->second;
}

const k8s::Meta* World::owner(std::string_view ns, std::string_view uid) const {
  const k8s::Meta* meta = nullptr;
  if (const auto* record = job(uid)) {
    meta = &record->job.meta;
  } else if (const auto found = owners_.find(uid); found != owners_.end()) {
    meta = &found->second.meta;
  }
  return meta != nullptr && meta->ns == ns ? meta : nullptr;
}

}  // namespace dhc
