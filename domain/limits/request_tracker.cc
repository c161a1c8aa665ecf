#include "domain/limits/request_tracker.h"

#include <algorithm>
#include <utility>

#include "domain/cluster/disruption.h"
#include "domain/contract/names.h"
#include "domain/limits/cap_book.h"
#include "domain/limits/write_keys.h"

namespace dhc {

namespace {

constexpr Millis kHour = std::chrono::hours(1);
// The same asked for later than this is another request: the longest pause, and what a turn may be late.
constexpr Millis kSameRequest = std::chrono::minutes(15);
constexpr int kEventAttempts = 5;
// The API server's clock against ours, and the second that its times are cut to.
constexpr Millis kLateNews = Seconds(5);
// How long after a refusal the write may still be committed: an etcd request's own time, and as much for the watch.
constexpr Millis kLateCommit = Seconds(30);

/// When the Eviction API began to end the pod, as its own condition says: a grace of any length cannot move that.
WallTime evicted_at(const k8s::Pod& pod) {
  const auto condition = std::ranges::find(pod.conditions, kDisruptionTarget, &k8s::Condition::type);
  if (condition != pod.conditions.end() && condition->last_transition) return *condition->last_transition;
  return asked_to_end_at(pod);
}

/// Our rule stands in the World as another one than we wrote on: when it is absent again, that is news.
bool is_seen(std::string_view key, const Attempt& attempt, const World& world) {
  if (attempt.state != Attempt::State::Accepted || !key.starts_with(kRuleKeyPrefix)) return false;
  const auto* rule = world.inventory().rule_named(std::string(key.substr(kRuleKeyPrefix.size())));
  return rule != nullptr && rule->meta.resource_version != attempt.resource_version;
}

std::vector<DeviceKey> devices_of(const HeldDevice& held_device) {
  if (!held_device.ambiguous) return {held_device.key};
  return {held_device.candidates.begin(), held_device.candidates.end()};
}

/// To the process before us: what we know ourselves stands.
void add_earlier_loss(OwnerLosses& losses, const OwnerLoss& loss, const std::vector<DeviceKey>& lost_to,
                      const Now& now) {
  const TimedLoss timed{.at = mono_of(loss.at, now), .loss = loss};
  for (const auto& key : lost_to) {
    if (losses.find(loss.owner_uid, key) == nullptr) losses.set(key, timed);
  }
}

/// What the server refused, it may have given up rather than taken back: it ends a request whose time is over, and not
/// the write that the request has begun. **Source:** apiserver, endpoints/handlers/finisher: the handler runs on after
/// the 504 is sent; etcd may commit what it has called timed out.
bool may_come_late(const EvictionAttempt& attempt, const Now& now) {
  return attempt.error.kind == ErrorKind::Declined && now.mono - attempt.tried_at < kLateCommit;
}

bool world_moved_on(const Attempt& attempt, const k8s::Pod& pod) {
  return attempt.resource_version != pod.meta.resource_version;
}

}  // namespace

bool is_in_doubt(const EvictionAttempt* attempt, const Now& now) {
  return attempt != nullptr && attempt->in_doubt && now.mono - attempt->doubted_at < kHour;
}

bool may_stand(const EvictionAttempt* attempt, const Now& now) {
  return attempt != nullptr && (attempt->state != Attempt::State::Failed || is_in_doubt(attempt, now));
}

bool came_too_late(const EvictionAttempt& attempt) {
  const auto kind = attempt.error.kind;
  return attempt.state == Attempt::State::Failed && (kind == ErrorKind::NotFound || kind == ErrorKind::Outdated);
}

std::string loss_owner(const k8s::Pod& pod) {
  return pod.meta.controller ? pod.meta.controller_identity() : pod.node_name + "/" + pod.meta.ns + "/" + pod.meta.name;
}

void RequestTracker::touch(const std::string& pod_uid, const EvictionAttempt& attempt) {
  touched_.pod(pod_uid);
  touched_.device(attempt.key);
  for (const auto& key : attempt.lost_to) touched_.device(key);
  if (!attempt.owner.empty()) touched_.owner(attempt.owner);
}

void RequestTracker::eviction_sent(const k8s::Pod& pod, const HeldDevice& held_device, std::vector<std::string> holders,
                                   const Now& now, bool holds) {
  auto& attempt = evictions_[pod.meta.uid];
  const bool accepted_before = attempt.state == Attempt::State::Accepted;
  if (accepted_before) ++attempt.in_vain;
  note_sent(attempt, pod.meta.resource_version, now);
  attempt.key = held_device.key;
  attempt.lost_to = holds ? devices_of(held_device) : std::vector<DeviceKey>();
  attempt.holders = std::move(holders);
  attempt.owner = pod.meta.controller_identity();
  attempt.loser = loss_owner(pod);
  attempt.shared_claim = held_device.shared ? held_device.claim_uid : SharedText();
  note_holder_sent(pod.meta.uid, attempt);
  touch(pod.meta.uid, attempt);
  served_[pod.meta.ns] = now.mono;
  tokens_.take(1, now.mono);
  attempt_tokens_.take(1, now.mono);
}

MonoTime RequestTracker::served_at(std::string_view ns) const {
  const auto found = served_.find(ns);
  return found == served_.end() ? MonoTime::min() : found->second;
}

void RequestTracker::eviction_done(const std::string& pod_uid, const Status& status, const std::string& seen_version,
                                   const Now& now) {
  const auto found = evictions_.find(pod_uid);
  if (found == evictions_.end()) return;
  auto& attempt = found->second;
  touch(pod_uid, attempt);
  note_done(attempt, status, now);
  // One whose answer never came may have happened: it counts, and the pod itself is no replacement.
  const bool maybe = !status && may_have_happened(attempt.error);
  note_holder_done(pod_uid, attempt, status || maybe);
  if (status || maybe) note_loss(attempt, now);
  if (status) return note_tried(attempt, true, now);
  attempt.resource_version = seen_version;
  // What was never sent or refused used no eviction; a request that may have happened did.
  if (!maybe) tokens_.give_back(1, now.mono);
  if (attempt.error.kind == ErrorKind::Cancelled) return attempt_tokens_.give_back(1, now.mono);
  note_tried(attempt, maybe, now);
  attempt.not_before = std::max(attempt.not_before, now.mono + eviction_pause(attempt.error, attempt.failures));
  if (maybe && !attempt.doubted_until) attempt.doubted_until = now.mono + kUnseen;
}

void RequestTracker::note_tried(EvictionAttempt& attempt, bool may_be_evicted, const Now& now) {
  attempt.tried_at = now.mono;
  attempt.in_doubt = attempt.in_doubt || may_be_evicted;
  if (may_be_evicted) attempt.doubted_at = now.mono;
}

void RequestTracker::note_holder_sent(const std::string& pod_uid, const EvictionAttempt& attempt) {
  if (!attempt.shared_claim.empty()) emptied_claims_[attempt.shared_claim].on_their_way.insert(pod_uid);
}

void RequestTracker::note_holder_done(const std::string& pod_uid, const EvictionAttempt& attempt, bool may_be_evicted) {
  const auto found = emptied_claims_.find(attempt.shared_claim);
  if (found == emptied_claims_.end()) return;
  auto& claim = found->second;
  claim.on_their_way.erase(pod_uid);
  claim.begun = claim.begun || may_be_evicted;
  if (!claim.begun && claim.on_their_way.empty()) emptied_claims_.erase(found);
}

void RequestTracker::note_loss(const EvictionAttempt& attempt, const Now& now) {
  for (const auto& key : attempt.lost_to) {
    const auto* known = losses_.find(attempt.loser, key);
    // A pod that came to the device after an earlier loss is a replacement, although it holds the device now.
    const bool is_first = known == nullptr || now.mono - known->at >= kLossMemory;
    losses_.set(key, {.at = now.mono,
                      .loss = {.owner_uid = attempt.loser,
                               .at = now.wall,
                               .holders = is_first ? attempt.holders : known->loss.holders}});
  }
}

const EvictionAttempt* RequestTracker::eviction(const std::string& pod_uid) const {
  const auto found = evictions_.find(pod_uid);
  return found == evictions_.end() ? nullptr : &found->second;
}

bool RequestTracker::lost_recently(const k8s::Pod& pod, const HeldDevice& held_device, const Now& now) const {
  const auto is_replacement = [&](const TimedLoss& timed) {
    const auto& holders = timed.loss.holders;
    return now.mono - timed.at < kLossMemory && std::ranges::find(holders, pod.meta.uid) == holders.end();
  };
  const auto is_lost = [&](const std::string& owner, const DeviceKey& key) {
    // Whichever of the devices as which its card is offered.
    return std::ranges::any_of(losses_.to_card(owner, key), [&](const auto* timed) { return is_replacement(*timed); });
  };
  const auto owner = loss_owner(pod);
  return std::ranges::any_of(devices_of(held_device), [&](const DeviceKey& key) {
    // 0.1.0 wrote the UID alone; only what it has written down can still be found so.
    return is_lost(owner, key) || (pod.meta.controller && is_lost(pod.meta.controller->uid, key));
  });
}

void RequestTracker::recall_losses(const DeviceRecords& records, const Now& now) {
  for (const auto& [key, record] : records) {
    for (auto loss : record.past.losses) {
      loss.at = std::min(loss.at, now.wall);  // by a wall clock that was once ahead
      TimedLoss recalled{.at = mono_of(loss.at, now), .loss = loss};
      // What was written down knows who held the device; which was the later one, either may know.
      if (const auto* known = losses_.find(loss.owner_uid, key); known != nullptr && known->loss.at >= loss.at) {
        recalled = *known;
        recalled.loss.holders = loss.holders;
      }
      losses_.set(key, std::move(recalled));
    }
  }
}

void RequestTracker::condition_sent(const k8s::Pod& pod, PodWords said, std::optional<MonoTime> heard_at,
                                    const Now& now) {
  touched_.pod(pod.meta.uid);
  auto [found, is_first] = conditions_.try_emplace(pod.meta.uid);
  auto& attempt = found->second;
  if (is_first) attempt.first_at = now.mono;
  note_sent(attempt, pod, std::move(said), heard_at, now);
}

void RequestTracker::condition_done(const std::string& pod_uid, const Status& status, const Now& now) {
  const auto found = conditions_.find(pod_uid);
  if (found == conditions_.end()) return;
  touched_.pod(pod_uid);
  note_done(found->second, status, now);
}

const ConditionAttempt* RequestTracker::condition(const std::string& pod_uid) const {
  const auto found = conditions_.find(pod_uid);
  return found == conditions_.end() ? nullptr : &found->second;
}

void RequestTracker::condition_refused_for_notice(const k8s::Pod& pod, const Now& now) {
  notices_.note_contested(pod.meta.uid, k8s::find(pod.meta.annotations, kNoticeAnnotation).value_or(""));
  const auto found = conditions_.find(pod.meta.uid);
  if (found != conditions_.end()) found->second.not_before = now.mono;
}

void RequestTracker::notice_taken_back(const k8s::Pod& pod) {
  if (const auto seen = k8s::find(pod.meta.annotations, kNoticeAnnotation))
    notices_.note_taken_back(pod.meta.uid, *seen);
}

bool RequestTracker::may_send_condition(const k8s::Pod& pod, const PodWords& wanted, const Now& now) const {
  const auto* attempt = condition(pod.meta.uid);
  if (attempt == nullptr) return true;
  if (too_often(*attempt, now)) return false;
  switch (attempt->state) {
    case Attempt::State::Sending:
      return false;
    case Attempt::State::Accepted:
      if (is_rare(*attempt, pod, wanted)) return now.mono >= again_at(*attempt, true);
      return world_moved_on(*attempt, pod) || now.mono - attempt->at >= kUnseen;
    case Attempt::State::Failed:
      return now.mono >= attempt->not_before;
  }
  return false;
}

std::optional<MonoTime> RequestTracker::may_send_condition_at(const k8s::Pod& pod, const PodWords& wanted) const {
  const auto* attempt = condition(pod.meta.uid);
  return attempt == nullptr ? std::nullopt : again_at(*attempt, is_rare(*attempt, pod, wanted));
}

void RequestTracker::event_sent(const std::string& name, const Now& now) {
  events_again_.erase(name);
  auto& attempt = events_[name];
  attempt.state = Attempt::State::Sending;
  attempt.at = now.mono;
}

void RequestTracker::event_done(const std::string& name, const Status& status, const Now& now) {
  const auto found = events_.find(name);
  if (found == events_.end()) return;
  auto& attempt = found->second;
  attempt.at = now.mono;
  // Events are best effort: after a few failures, or when the server will never take this one, it is left.
  const bool again = !status && ++attempt.failures < kEventAttempts && status.error().kind != ErrorKind::Invalid &&
                     status.error().kind != ErrorKind::NotFound;
  attempt.state = again ? Attempt::State::Failed : Attempt::State::Accepted;
  if (!again) return;
  attempt.not_before = now.mono + backoff_after(status.error(), attempt.failures);
  events_again_[name] = attempt.not_before;
}

bool RequestTracker::may_send_event(const std::string& name, const Now& now) const {
  const auto found = events_.find(name);
  if (found == events_.end()) return true;
  return found->second.state == Attempt::State::Failed && now.mono >= found->second.not_before;
}

void RequestTracker::write_sent(const std::string& key, const std::string& seen_version, const Now& now, Asks asks) {
  auto& attempt = writes_[key];
  if (attempt.failures == 0) attempt.first_at = now.mono;
  if (attempt.state == Attempt::State::Accepted) {
    const bool is_again = !asks.words.empty() && asks.words == attempt.asks && now.mono - attempt.at < kSameRequest;
    note_stays(attempt, !is_again, asks.heard_at);
  }
  attempt.asks = std::move(asks.words);
  attempt.begins = asks.begins;
  note_sent(attempt, seen_version, now);
}

void RequestTracker::write_done(const std::string& key, const Status& status, const Now& now) {
  const auto found = writes_.find(key);
  if (found != writes_.end()) note_done(found->second, status, now);
}

const WriteAttempt* RequestTracker::write(const std::string& key) const {
  const auto found = writes_.find(key);
  return found == writes_.end() ? nullptr : &found->second;
}

bool RequestTracker::is_taken_away(const std::string& key, std::string_view asks) const {
  const auto* attempt = write(key);
  return attempt != nullptr && !asks.empty() && attempt->asks == asks && is_in_vain(*attempt);
}

bool RequestTracker::may_write(const std::string& key, const std::string& seen_version, const Now& now,
                               std::string_view asks) const {
  const auto* attempt = write(key);
  if (attempt == nullptr) return true;
  if (too_often(*attempt, now)) return false;
  const bool moved_on = attempt->resource_version != seen_version;
  switch (attempt->state) {
    case Attempt::State::Sending:
      return false;
    case Attempt::State::Accepted:
      if (is_taken_away(key, asks)) return now.mono >= again_at(*attempt, true);
      return moved_on || now.mono - attempt->at >= kUnseen;
    case Attempt::State::Failed: {
      // A conflict is over as soon as the World shows another version; what came out otherwise can then be taken back.
      const auto kind = attempt->error.kind;
      const bool world_decides =
          kind == ErrorKind::Conflict || kind == ErrorKind::NotFound || kind == ErrorKind::Altered;
      return now.mono >= attempt->not_before || (world_decides && moved_on);
    }
  }
  return false;
}

bool RequestTracker::waits_for(const k8s::Object& object) const {
  const auto& meta = k8s::meta_of(object);
  switch (k8s::kind_of(object)) {
    case k8s::Kind::Pod:
      return evictions_.contains(meta.uid) || conditions_.contains(meta.uid);
    case k8s::Kind::Node:
      return writes_.contains(node_write_key(meta.name)) || writes_.contains(hand_over_write_key(meta.name));
    case k8s::Kind::Job:
      return writes_.contains(job_write_key(meta.uid));
    case k8s::Kind::DeviceTaintRule:
    case k8s::Kind::ConfigMap:
      return true;
    case k8s::Kind::ResourceClaim:
    case k8s::Kind::ResourceSlice:
    case k8s::Kind::Namespace:
    case k8s::Kind::ReplicaSet:
    case k8s::Kind::StatefulSet:
    case k8s::Kind::PodDisruptionBudget:
    case k8s::Kind::PodGroup:
    case k8s::Kind::Lease:
      return false;
  }
  std::unreachable();
}

std::optional<MonoTime> RequestTracker::may_write_at(const std::string& key, std::string_view asks) const {
  const auto* attempt = write(key);
  return attempt == nullptr ? std::nullopt : again_at(*attempt, is_taken_away(key, asks));
}

/// Whether a process before us has evicted the pod from this device: our condition names the device, or it was written
/// down, before the eviction or after it. A condition may be missing: the eviction waits for it, but not for ever.
bool RequestTracker::was_ours(const PodRecord& record, const HeldDevice& held_device,
                              const EvictionCharge* charge) const {
  if (record.word_of(to_string(held_device.key)) != nullptr) return true;
  if (charge != nullptr && charge->key == held_device.key) return true;
  return std::ranges::any_of(devices_of(held_device), [&](const DeviceKey& key) {
    const auto* lost = losses_.find(loss_owner(record.pod), key);
    return lost != nullptr && std::ranges::count(lost->loss.holders, record.pod.meta.uid) > 0;
  });
}

void RequestTracker::learn(const World& world, const std::map<std::string, EvictionCharge>& charges, const Now& now) {
  if (!began_at_) touched_.everything();
  if (!began_at_) began_at_ = moment_of(now);
  learn_lost(world, charges, now);
  for (const auto& uid : world.terminating()) {
    const auto& record = *world.pod(uid);
    if (!was_evicted(record.pod)) continue;
    const auto known = evictions_.find(uid);
    if (known != evictions_.end()) {
      // The answer never came, said TimedOut, or came too early, and the pod shows that the eviction happened.
      const bool is_open = is_in_doubt(&known->second, now) || may_come_late(known->second, now);
      if (known->second.state == Attempt::State::Failed && is_open)
        eviction_done(uid, {}, record.pod.meta.resource_version, now);
      note_shown(known->second, record.pod, world, now);
      continue;
    }
    const auto begun = world.ours(evicted_at(record.pod));
    if (begun > began_at_->wall + kLateNews) continue;  // another client's, a drain's say
    // Of the process before us: it holds a slot.
    const auto charge = charges.find(uid);
    const bool went_with = charge != charges.end() && !charge->second.gang.empty() &&
                           find_held_device(record.held_devices, charge->second.key) == nullptr;
    if (went_with) {
      auto& attempt = evictions_[uid];
      attempt.key = charge->second.key;
      attempt.owner = record.pod.meta.controller_identity();
      attempt.loser = loss_owner(record.pod);
      attempt.state = Attempt::State::Accepted;
      attempt.at = mono_of(begun, now);
      touch(uid, attempt);
      continue;
    }
    for (const auto& held_device : record.held_devices) {
      if (!was_ours(record, held_device, charge == charges.end() ? nullptr : &charge->second)) continue;
      auto& attempt = evictions_[uid];
      attempt.key = held_device.key;
      attempt.lost_to = devices_of(held_device);
      attempt.owner = record.pod.meta.controller_identity();
      attempt.loser = loss_owner(record.pod);
      attempt.state = Attempt::State::Accepted;
      attempt.at = mono_of(begun, now);
      add_earlier_loss(losses_, {.owner_uid = attempt.loser, .at = begun, .holders = {uid}}, attempt.lost_to, now);
      touch(uid, attempt);
    }
  }
}

/// A process before us may have evicted who was charged and is gone, and died before it could write the loss down.
void RequestTracker::learn_lost(const World& world, const std::map<std::string, EvictionCharge>& charges,
                                const Now& now) {
  for (const auto& [uid, charge] : charges) {
    const bool is_lost = charge.recalled && !charge.counted && !charge.loser.empty() && world.pod(uid) == nullptr;
    const auto* attempt = eviction(uid);
    if (!is_lost || (attempt != nullptr && !came_too_late(*attempt))) continue;
    // When it went nobody has seen: as late as the charge could be used.
    const auto at = std::min(now.wall, charge.at + CapBook::kUnusedCharge);
    const auto known = losses_.all().size();
    add_earlier_loss(losses_, {.owner_uid = charge.loser, .at = at, .holders = {uid}},
                     charge.may_be.empty() ? std::vector{charge.key} : charge.may_be, now);
    if (losses_.all().size() != known) touched_.everything();
  }
}

void RequestTracker::note_shown(EvictionAttempt& attempt, const k8s::Pod& pod, const World& world, const Now& now) {
  if (attempt.state != Attempt::State::Accepted || attempt.shown) return;
  attempt.shown = true;
  touch(pod.meta.uid, attempt);
  // Its grace begins with the deletion, which may come long after the answer.
  attempt.at = std::max(attempt.at, mono_of(world.ours(evicted_at(pod)), now));
}

void RequestTracker::forget(const World& world, const Now& now) {
  const auto gone = [&](const auto& entry) {
    const bool is_gone = world.pod(entry.first) == nullptr && entry.second.state != Attempt::State::Sending;
    if (is_gone) touched_.pod(entry.first);
    if constexpr (requires { entry.second.key; }) {
      if (is_gone) touch(entry.first, entry.second);
    }
    return is_gone;
  };
  std::erase_if(evictions_, gone);
  std::erase_if(conditions_, gone);
  notices_.forget([&](const std::string& uid) { return world.pod(uid) == nullptr; });
  std::erase_if(served_, [&](const auto& entry) { return now.mono - entry.second >= kHour; });
  for (auto& device : losses_.forget(now.mono)) touched_.device(std::move(device));
  const auto forgotten = std::erase_if(events_, [&](const auto& entry) {
    return entry.second.state != Attempt::State::Sending && now.mono - entry.second.at >= kHour;
  });
  const auto again = std::erase_if(events_again_, [&](const auto& entry) { return entry.second <= now.mono; });
  if (forgotten + again > 0) touched_.everything();
  std::erase_if(writes_, [&](const auto& entry) {
    if (is_seen(entry.first, entry.second, world)) return true;
    const bool is_old = entry.second.state != Attempt::State::Sending && now.mono - entry.second.at >= kHour &&
                        now.mono >= entry.second.not_before;
    if (is_old) touched_.everything();
    return is_old;
  });
  altered_rules_.forget(world, now);
  owner_reads_.forget(now);
  std::erase_if(emptied_claims_, [&](const auto& entry) { return !world.is_claim_allocated(entry.first); });
}

}  // namespace dhc
