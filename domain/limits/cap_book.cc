#include "domain/limits/cap_book.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "domain/cluster/disruption.h"
#include "domain/cluster/workload.h"
#include "domain/contract/our_taint.h"
#include "k8s-client/model/scheduling.h"

namespace dhc {

namespace {

constexpr Millis kOneCount = std::chrono::minutes(10);
/// What passes all gates is sent as soon as its charge is written.
constexpr Millis kFirstTry = std::chrono::minutes(1);

enum class Fate : std::uint8_t { Stays, Happened, Dropped };

bool was_tried(const EvictionAttempt* attempt) { return attempt != nullptr && attempt->tried_at != MonoTime::min(); }

/// Of a charge whose pod is gone. What a process before this one has charged it may have sent.
Fate fate_without_pod(const EvictionCharge& charge, const EvictionAttempt* attempt, const Now& now) {
  const bool was_earlier = charge.recalled && (!was_tried(attempt) || came_too_late(*attempt));
  return was_earlier || is_in_doubt(attempt, now) ? Fate::Happened : Fate::Dropped;
}

/// Whether the others of its gang follow: only our own eviction begins a gang, no drain's of a pod that is charged.
/// What the process before this one has sent shows within a minute, and it sent the pod on the bad device first; a
/// charge that is read from an old backup begins nothing.
bool begins_gang(const EvictionCharge& charge, const EvictionAttempt* attempt, const RequestTracker& requests,
                 const Now& now) {
  if (charge.gang.empty()) return false;
  if (may_stand(attempt, now)) return true;
  const auto& began = requests.began_at();
  const bool is_recent = now.wall - charge.at < CapBook::kUnusedCharge;
  const bool is_first = !charge.loser.empty();
  return charge.recalled && is_first && is_recent && began && now.mono - began->mono < kFirstTry;
}

bool stays(const PodRecord* record) { return record != nullptr && !record->pod.meta.deletion && is_live(record->pod); }

Fate fate_of(const EvictionCharge& charge, const PodRecord* record, const EvictionAttempt* attempt, const Now& now) {
  if (charge.counted) return stays(record) ? Fate::Stays : Fate::Dropped;
  if (attempt != nullptr && attempt->state == Attempt::State::Accepted) return Fate::Happened;
  if (attempt != nullptr && attempt->state == Attempt::State::Sending) return Fate::Stays;
  if (record == nullptr) return fate_without_pod(charge, attempt, now);
  const auto& pod = record->pod;
  const bool unsure = is_in_doubt(attempt, now);
  // Another client's deletion, unless the pod says that it was evicted: a drain's eviction that raced with ours counts.
  if (pod.meta.deletion) return was_evicted(pod) || unsure ? Fate::Happened : Fate::Dropped;
  if (!is_live(pod) && !unsure) return Fate::Dropped;
  const auto charged_at = charge.half_since.value_or(charge.at);
  const bool is_old = now.wall - charged_at >= CapBook::kUnusedCharge && !is_in_doubt(attempt, now);
  return is_old && !is_under_way(attempt, now) ? Fate::Dropped : Fate::Stays;
}

/// A wall clock that was once ahead must not hold evictions for longer than a day.
bool pull_back(WallTime& time, const Now& now) {
  if (time <= now.wall) return false;
  time = now.wall;
  return true;
}

/// Whether a rule under our name that is not as we make it keeps new pods off the device: whoever has changed it, and
/// whatever was said of the device, it is out of service on our account as long as that stands.
bool is_kept_off(const World& world, const DeviceKey& key) {
  return std::ranges::any_of(world.inventory().named_rules_for(key), [](const auto* rule) {
    return k8s::keeps_pods_off(rule->taint) && !is_as_we_make_it(*rule);
  });
}

bool is_still_out(const OutOfService& out, const DeviceRecord& record) {
  if (record.is_acknowledged()) return false;
  return record.ours.any() || (out.evicted && record.is_open());
}

}  // namespace

bool may_give_way(const EvictionCharge& charge, const RequestTracker& requests, const Now& now) {
  const auto* attempt = requests.eviction(charge.pod_uid);
  if (charge.half_since || charge.counted || is_under_way(attempt, now) || is_in_doubt(attempt, now)) return false;
  if (was_tried(attempt)) return true;
  // What the process before this one has sent shows within a minute.
  const auto& began = requests.began_at();
  if (charge.recalled && (!began || now.mono - began->mono < kFirstTry)) return false;
  return now.wall - charge.at >= kFirstTry;
}

void merge_counts(std::vector<EvictionCount>& counts, std::size_t most) {
  while (counts.size() > most && counts.size() > 1) {
    counts[1].count += counts[0].count;
    counts[1].first = counts[0].first;
    counts.erase(counts.begin());
  }
}

void follow_charge(EvictionCharge& charge, const EvictionCharge& earlier) {
  charge.counted = earlier.counted;
  charge.recalled = earlier.recalled;
  if (charge.may_be.empty()) charge.may_be = {charge.key};
  auto devices = earlier.may_be;
  devices.push_back(earlier.key);
  for (const auto& key : devices) {
    // They are written as devices of one source.
    if (key.source != charge.key.source || std::ranges::count(charge.may_be, key) > 0) continue;
    charge.may_be.push_back(key);
  }
}

void CapBook::charge(EvictionCharge charge) {
  auto uid = charge.pod_uid;
  charges_.insert_or_assign(std::move(uid), std::move(charge));
}

const EvictionCharge* CapBook::first_to_give_way(const std::set<std::string>& going, const RequestTracker& requests,
                                                 const Now& now) const {
  const EvictionCharge* first = nullptr;
  for (const auto& [uid, charge] : charges_) {
    const bool is_older = first == nullptr || charge.at < first->at;
    if (is_older && !going.contains(uid) && may_give_way(charge, requests, now)) first = &charge;
  }
  return first;
}

void CapBook::recall(EvictionCharge charge) {
  charge.recalled = true;
  this->charge(std::move(charge));
}

void CapBook::recall(const std::string& scope, EvictionCount count) {
  auto& counts = evictions_[scope];
  counts.insert(std::ranges::upper_bound(counts, count.last, {}, &EvictionCount::last), count);
}

void CapBook::count_eviction(const EvictionCharge& charge, const World& world, const Now& now) {
  workloads_.note(charge.workload, world.card_of(charge.key), now.wall);
  auto& counts = evictions_[charge.key.scope];
  if (counts.empty() || now.wall - counts.back().first >= kOneCount) {
    counts.push_back({.first = now.wall, .last = now.wall, .count = 0});
  }
  counts.back().last = std::max(counts.back().last, now.wall);
  ++counts.back().count;
  auto [place, is_new] = out_.try_emplace(charge.key);
  if (is_new) place->second = {.node = charge.node, .at = now.wall};
  place->second.evicted = true;
  asked_again_.insert(charge.key);
}

void CapBook::recall(const DeviceKey& key, OutOfService out) {
  out_.insert_or_assign(key, std::move(out));
  asked_again_.insert(key);
}

/// Pods that budgets keep refusing must not fill the book: the longest unused charge goes, and is made again when its
/// turn comes. One whose eviction may have happened goes last.
bool CapBook::drop_oldest(const RequestTracker& requests, const Now& now) {
  const auto waiting = static_cast<std::size_t>(
      std::ranges::count_if(charges_, [](const auto& entry) { return !entry.second.counted; }));
  if (waiting <= kMostCharges) return false;
  std::vector<std::tuple<bool, bool, WallTime, std::string>> unused;
  for (const auto& [uid, charge] : charges_) {
    const auto* attempt = requests.eviction(uid);
    if (charge.half_since || charge.counted || is_under_way(attempt, now)) continue;
    unused.emplace_back(is_in_doubt(attempt, now), !may_give_way(charge, requests, now), charge.at, uid);
  }
  std::ranges::sort(unused);
  const auto too_many = std::min(waiting - kMostCharges, unused.size());
  for (std::size_t i = 0; i < too_many; ++i) charges_.erase(std::get<std::string>(unused[i]));
  return too_many > 0;
}

std::size_t CapBook::places_taken(const RequestTracker& requests, const Now& now) const {
  return static_cast<std::size_t>(std::ranges::count_if(charges_, [&](const auto& entry) {
    return !entry.second.counted && !may_give_way(entry.second, requests, now);
  }));
}

bool CapBook::settle(const World& world, const RequestTracker& requests, const Now& now) {
  bool changed = false;
  std::set<std::string> begun;  // gangs of which one has gone
  for (auto at = charges_.begin(); at != charges_.end();) {
    auto& charge = at->second;
    changed = pull_back(charge.at, now) || changed;
    if (charge.half_since) changed = pull_back(*charge.half_since, now) || changed;
    const auto* attempt = requests.eviction(at->first);
    const auto fate = fate_of(charge, world.pod(at->first), attempt, now);
    if (fate == Fate::Stays) {
      ++at;
      continue;
    }
    // It may have been charged for another bad device of the pod.
    if (attempt != nullptr) charge.key = attempt->key;
    if (fate == Fate::Happened) count_eviction(charge, world, now);
    if (fate == Fate::Happened && begins_gang(charge, attempt, requests, now)) begun.insert(charge.gang);
    changed = true;
    if (fate == Fate::Happened && stays(world.pod(at->first))) {
      charge.counted = true;
      ++at;
    } else {
      at = charges_.erase(at);
    }
  }
  for (auto& [uid, charge] : charges_) {
    if (charge.counted || charge.half_since || !begun.contains(charge.gang)) continue;
    charge.half_since = now.wall;
    changed = true;
  }
  changed = drop_oldest(requests, now) || changed;
  for (auto& [scope, counts] : evictions_) {
    for (auto& count : counts) {
      changed = pull_back(count.last, now) || changed;
      changed = pull_back(count.first, now) || changed;
    }
    // That they are too old by now need not be written.
    std::erase_if(counts, [&](const EvictionCount& count) { return now.wall - count.last >= kDay; });
  }
  std::erase_if(evictions_, [](const auto& entry) { return entry.second.empty(); });
  return workloads_.settle(now) || changed;
}

bool CapBook::take_out(const DeviceKey& key, bool by_rule, const World& world, const Now& now) {
  auto [place, is_new] = out_.try_emplace(key);
  if (!is_new) return false;
  place->second = {.node = world.node_of(key), .at = now.wall};
  // A node's taint takes all that is bad there, whatever room their holders have: it is one step of theirs. Each
  // further device is their next, when its pod is to go.
  const auto card = world.card_of(key);
  for (const auto& workload : workloads_on(key, world)) {
    if (by_rule || !workloads_.has_any_beside(workload, card)) workloads_.note(workload, card, now.wall);
  }
  return true;
}

bool CapBook::follow(const World& world, const DeviceRecords& records, const Policy& policy, const Now& now,
                     const Focus* focus) {
  bool changed = false;
  for_each_in(focus, records, [&](const DeviceKey& key, const DeviceRecord& record) {
    if (!record.ours.any() || record.is_acknowledged()) return;
    changed = take_out(key, record.ours.rule.stands(), world, now) || changed;
  });
  for_each_in(focus, world.inventory().named_rules(), [&](const DeviceKey& key, const auto& /*uids*/) {
    if (is_kept_off(world, key)) changed = take_out(key, true, world, now) || changed;
  });
  const bool is_all = focus == nullptr || focus->all;
  auto keys = std::exchange(asked_again_, {});
  if (is_all) {
    for (const auto& [key, out] : out_) keys.insert(key);
  } else {
    keys.insert(focus->devices.begin(), focus->devices.end());
  }
  for (const auto& key : keys) changed = look_at(key, world, records, now) || changed;
  tally_.update(out_, is_all ? nullptr : &keys, world, policy, now);
  return changed;
}

/// Whether it is still out. True if something is to be written.
bool CapBook::look_at(const DeviceKey& key, const World& world, const DeviceRecords& records, const Now& now) {
  const auto found = out_.find(key);
  if (found == out_.end()) return false;
  auto& out = found->second;
  const bool is_pulled_back = pull_back(out.at, now);
  const auto* record = find_record(records, key);
  out.whole_node = record != nullptr && record->ours.node.stands();
  // Nothing is remembered of a device that a report did not name for sure: time alone ends that.
  const bool is_remembered = record != nullptr ? is_still_out(out, *record) : out.evicted && now.wall - out.at < kDay;
  if (!is_remembered && !is_kept_off(world, key)) {
    out_.erase(found);
    return true;
  }
  if (record == nullptr) asked_again_.insert(key);
  return is_pulled_back;
}

bool CapBook::release(WallTime until) {
  bool changed = false;
  for (auto& [scope, counts] : evictions_) {
    changed = std::erase_if(counts, [&](const EvictionCount& count) { return count.last < until; }) > 0 || changed;
  }
  std::erase_if(evictions_, [](const auto& entry) { return entry.second.empty(); });
  return workloads_.release(until) || changed;
}

}  // namespace dhc
