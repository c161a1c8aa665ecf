#include "domain/cluster/health_tracker.h"

#include <algorithm>
#include <utility>

namespace dhc {

namespace {
constexpr Millis kOrphanMemory = std::chrono::hours(1);
constexpr Millis kRecoveredMemory = std::chrono::minutes(5);
template <class Texts>
void insert_sorted(Texts& sorted, const SharedText& value) {
  const auto at = std::ranges::lower_bound(sorted, value);
  if (at == sorted.end() || *at != value) sorted.insert(at, value);
}
}  // namespace

bool DeviceState::is_witness(std::string_view pod_uid) const { return std::ranges::binary_search(witnesses, pod_uid); }

void HealthTracker::add_holder(const DeviceKey& key, const SharedText& pod_uid) {
  const auto [found, is_new] = devices_.try_emplace(key);
  if (is_new) count(key, 1);
  auto& device = found->second;
  device.orphaned_at.reset();
  device.holders.insert(pod_uid);
}

void HealthTracker::remove_holder(const DeviceKey& key, const SharedText& pod_uid, const Now& now) {
  const auto found = devices_.find(key);
  if (found == devices_.end()) return;
  auto& device = found->second;
  device.holders.erase(pod_uid);
  erase(device.witnesses, pod_uid);
  erase(device.relieved, pod_uid);
  if (const auto word = other_words_.find(key); word != other_words_.end()) std::erase(word->second.witnesses, pod_uid);
  if (!device.holders.empty()) return;
  if (device.not_healthy_since) {
    orphans_due_.note(now.mono + kOrphanMemory);
    device.orphaned_at = now.mono;  // its history matters: the next pod may get the same device
  } else {
    recovered_.erase(key);
    other_words_.erase(key);
    devices_.erase(found);
    count(key, -1);
  }
}

void HealthTracker::observe(const DeviceKey& key, const Evidence& evidence, const Now& now) {
  const auto found = devices_.find(key);
  if (found == devices_.end()) return;
  auto& device = found->second;
  const bool had_source = std::exchange(device.has_source, evidence.health.has_value());
  const bool was_unhealthy = device.health == k8s::Health::Unhealthy;
  const bool unknown_too_long = device.unknown_since && now.mono - device.unknown_since->mono >= kLongestUnknown;
  // After so long an Unknown nothing goes on that a restart could have forgotten.
  const bool is_over = evidence.forgotten && unknown_too_long && !evidence.remembered;
  if (is_over) device.called_bad_at.reset();
  device.forgotten = evidence.forgotten && !is_over;
  note_other_word(key, device, evidence, now);
  if (!evidence.health && !device.not_healthy_since && !evidence.remembered) {
    device.health = k8s::Health::Unknown;  // held, and nobody speaks of it: not a state that anything acts on
    return;
  }
  device.health = evidence.health.value_or(k8s::Health::Unknown);
  if (is_over && evidence.says_healthy == true) device.health = k8s::Health::Healthy;
  if (device.health == k8s::Health::Healthy) {
    if (device.unhealthy_since) {
      device.recovered_at = moment_of(now);
      device.last_incident = now.mono - device.unhealthy_since->mono;
      recovered_.insert(key);
      device.relieved = std::move(device.witnesses);
    }
    device.witnesses.clear();
    device.unhealthy_since.reset();
    device.not_healthy_since.reset();
    device.unknown_since.reset();
    device.message.clear();
    device.seen_healthy = true;
    not_healthy_.erase(key);
    other_words_.erase(key);
    return;
  }
  not_healthy_.insert(key);
  if (device.health == k8s::Health::Unhealthy && unknown_too_long && !evidence.remembered) {
    device.unhealthy_since.reset();  // what was before it says nothing about now
    device.witnesses.clear();
  }
  // What was called healthy by mistake, before its incident or its reporter's start was known, goes on.
  const bool remembers = evidence.remembered && (!device.seen_healthy || evidence.forgotten) && !device.unhealthy_since;
  if (remembers && evidence.forgotten) device.witnesses = std::exchange(device.relieved, {});
  const bool goes_on = device.unhealthy_since.has_value();
  const Moment begin = remembers ? moment_of(*evidence.remembered, now) : moment_of(now);
  if (!device.not_healthy_since || (remembers && begin < *device.not_healthy_since)) device.not_healthy_since = begin;
  if (!device.unhealthy_since && (remembers || device.health == k8s::Health::Unhealthy)) {
    device.unhealthy_since = begin;
  }
  if (device.unhealthy_since) {
    for (const auto& uid : evidence.witnesses) insert_sorted(device.witnesses, uid);
  }
  if (device.health == k8s::Health::Unhealthy) {
    // What is bad at our first sight of it may have been called so long ago, and by another.
    const bool was_seen = had_source || goes_on || device.seen_healthy;
    if (!was_unhealthy && was_seen) device.called_bad_at = moment_of(now);
    if (!was_unhealthy || device.boot_id.empty()) device.boot_id = evidence.boot_id;
    device.message = evidence.message;
    device.unknown_since.reset();
  } else if (device.forgotten) {
    device.unknown_since.reset();  // a word that is not believed takes nothing back
  } else if (!device.unknown_since) {
    device.unknown_since = moment_of(now);
  }
}

void HealthTracker::note_called_bad(const DeviceKey& key, const Moment& word, const SharedText& boot_id) {
  const auto found = devices_.find(key);
  if (found == devices_.end()) return;
  found->second.called_bad_at = word;
  found->second.boot_id = boot_id;
}

void HealthTracker::begin_anew(const DeviceKey& key) {
  const auto found = devices_.find(key);
  if (found == devices_.end()) return;
  auto& device = found->second;
  auto holders = std::move(device.holders);
  device = DeviceState();
  device.holders = std::move(holders);
  device.seen_healthy = true;
  not_healthy_.erase(key);
  recovered_.erase(key);
  other_words_.erase(key);
  if (!device.holders.empty()) return;
  devices_.erase(found);
  count(key, -1);
}

void HealthTracker::note_other_word(const DeviceKey& key, const DeviceState& device, const Evidence& evidence,
                                    const Now& now) {
  const auto known = other_words_.find(key);
  if (evidence.other_word.empty()) {
    if (known != other_words_.end() && !known->second.silent_since) known->second.silent_since = moment_of(now);
    return;
  }
  const bool goes_on = known != other_words_.end() && known->second.word == evidence.other_word &&
                       (!known->second.silent_since || now.mono - known->second.silent_since->mono < kLongestUnknown);
  const bool remembers = evidence.remembered && !device.seen_healthy;
  auto& word = other_words_[key];
  if (!goes_on) {
    word = {.word = evidence.other_word,
            .message = {},
            .since = remembers ? moment_of(*evidence.remembered, now) : moment_of(now),
            .silent_since = {},
            .witnesses = {}};
  }
  word.message = evidence.other_message;
  word.silent_since.reset();
  for (const auto& uid : evidence.other_witnesses) insert_sorted(word.witnesses, uid);
}

const OtherWord* HealthTracker::other_word_of(const DeviceKey& key) const {
  const auto found = other_words_.find(key);
  return found == other_words_.end() ? nullptr : &found->second;
}

std::vector<DeviceKey> HealthTracker::forget(const Now& now) {
  std::vector<DeviceKey> forgotten;
  if (orphans_due_.at() && now.mono >= *orphans_due_.at()) forgotten = forget_orphans(now);
  std::erase_if(recovered_, [&](const DeviceKey& key) {
    const auto device = devices_.find(key);
    return device == devices_.end() || !device->second.recovered_at ||
           now.mono - device->second.recovered_at->mono >= kRecoveredMemory;
  });
  return forgotten;
}

/// Only devices that are not Healthy outlive their holders, so only those are looked at.
std::vector<DeviceKey> HealthTracker::forget_orphans(const Now& now) {
  std::vector<DeviceKey> forgotten;
  orphans_due_ = {};
  for (const auto& key : not_healthy_) {
    const auto& device = devices_.at(key);
    if (!device.orphaned_at) continue;
    const auto due = *device.orphaned_at + kOrphanMemory;
    if (now.mono >= due) {
      forgotten.push_back(key);
    } else {
      orphans_due_.note(due);
    }
  }
  for (const auto& key : forgotten) {
    devices_.erase(key);
    other_words_.erase(key);
    not_healthy_.erase(key);
    count(key, -1);
  }
  return forgotten;
}

void HealthTracker::count(const DeviceKey& key, std::int64_t change) {
  if (key.source != DeviceKey::Source::Dra) return;
  auto& count = dra_[key.scope];
  count += change;
  if (count == 0) dra_.erase(key.scope);
}

std::int64_t HealthTracker::count_of(std::string_view driver) const {
  const auto found = dra_.find(driver);
  return found == dra_.end() ? 0 : found->second;
}

void HealthTracker::forget_unheld(const std::function<bool(const DeviceKey&)>& is_other) {
  std::erase_if(not_healthy_, [&](const DeviceKey& key) {
    const auto device = devices_.find(key);
    if (device == devices_.end() || !device->second.holders.empty() || !is_other(key)) return false;
    devices_.erase(device);
    other_words_.erase(key);
    count(key, -1);
    return true;
  });
}

const DeviceState* HealthTracker::find(const DeviceKey& key) const {
  const auto found = devices_.find(key);
  return found == devices_.end() ? nullptr : &found->second;
}

}  // namespace dhc
