#include "reconcilers/shared/coming_pods.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/wake.h"
#include "domain/cluster/disruption.h"
#include "domain/cluster/owner_chain.h"
#include "k8s-client/model/job.h"

namespace dhc {

namespace {

/// How long beyond its grace period a pod is believed to be leaving. **Source:** seen on 1.37.1: the scheduler counts a
/// pod until its object is gone, so one that hangs keeps its replacement Pending.
constexpr Millis kLeavingPatience = std::chrono::minutes(2);

bool evicted_by_us(const k8s::Pod& pod, const RequestTracker& requests, const Now& now) {
  if (is_under_way(requests.eviction(pod.meta.uid), now)) return true;
  const auto* condition = our_condition(pod);  // a process before us may have evicted it
  return pod.meta.deletion && condition != nullptr && condition->status == "True";
}

bool is_stuck(const k8s::Pod& pod, const World& world, const Now& now) {
  return pod.meta.deletion && now.wall - world.ours(*pod.meta.deletion) >= kLeavingPatience;
}

/// The owner will make no other pod, as far as we know it.
bool is_done(const k8s::OwnerRef& owner, const std::string& ns, const World& world) {
  if (owner.uid.empty()) return true;
  if (!is_watched(owner)) return false;
  if (world.owner(ns, owner.uid) == nullptr) return true;
  const auto* record = world.job(ns, owner.uid);
  return record != nullptr && (k8s::is_finished(record->job) || record->job.suspended);
}

/// What one pod needs; a claim that it shares counts for the first of its pods alone.
Demand demand_of_one(const k8s::Pod& pod, const World& world) {
  k8s::Pod alone = pod;
  erase_if(alone.claims, [&](const k8s::PodClaim& claim) {
    const auto& users = world.users_of(claim_key(pod.meta.ns, claim.claim_name));
    return !users.empty() && *users.begin() != pod.meta.uid;
  });
  const std::array pods = {static_cast<const k8s::Pod*>(&alone)};
  return demand_of(pods, world);
}

}  // namespace

void ComingPods::note_changed(const Touched& touched) {
  all_uncounted_ = all_uncounted_ || touched.all();
  if (departures_.empty()) return;
  uncounted_.insert(touched.workloads().begin(), touched.workloads().end());
}

void ComingPods::observe(const World& world, const RequestTracker& requests, const Now& now) {
  leaving_.clear();
  note_departures(world, requests, now);
  count_replacements(world);
  forget_departures(world, now);
  std::erase_if(offered_since_, [&](const auto& entry) { return !world.unbound().contains(entry.first); });
  std::erase_if(crowded_since_, [&](const auto& entry) { return world.pod(entry.first) == nullptr; });
}

void ComingPods::note_departures(const World& world, const RequestTracker& requests, const Now& now) {
  const auto note = [&](const std::string& uid) {
    const auto* record = world.pod(uid);
    if (record == nullptr || !is_live(record->pod) || !evicted_by_us(record->pod, requests, now)) return;
    const auto& pod = record->pod;
    if (!is_stuck(pod, world, now)) leaving_.insert(uid);
    auto [found, is_new] = departures_.try_emplace(uid);
    auto& departure = found->second;
    if (is_new) {
      departure = {.ns = pod.meta.ns,
                   .owner = pod.meta.controller.value_or(k8s::OwnerRef{}),
                   .owner_identity = {},
                   .demand = std::make_shared<const Demand>(demand_of_one(pod, world)),
                   .at = server_now(world, now),
                   .since = now.mono};
      departure.owner_identity = departure.ns + "/" + departure.owner.uid;
      uncounted_.insert(departure.owner_identity);
    }
    const auto at = pod.meta.deletion ? asked_to_end_at(pod) : departure.at;
    if (std::exchange(departure.at, at) != at) uncounted_.insert(departure.owner_identity);
  };
  for (const auto& [uid, attempt] : requests.evictions()) note(uid);
  for (const auto& uid : world.terminating()) note(uid);
}

void ComingPods::count_replacements(const World& world) {
  const bool all = std::exchange(all_uncounted_, false);
  const auto uncounted = std::exchange(uncounted_, {});
  if (all) replaced_.clear();
  for (const auto& owner : uncounted) replaced_.erase(owner);
  if (!all && uncounted.empty()) return;
  std::map<std::string_view, WallTime> since;
  for (const auto& [uid, departure] : departures_) {
    if (!all && !uncounted.contains(departure.owner_identity)) continue;
    const auto [known, is_new] = since.try_emplace(departure.owner_identity, departure.at);
    if (!is_new) known->second = std::min(known->second, departure.at);
  }
  for (const auto& [owner, at] : since) count_replacements(std::string(owner), at, world);
}

void ComingPods::count_replacements(const std::string& owner, WallTime since, const World& world) {
  auto& count = replaced_[owner];
  for (const auto* pods : world.pods_owned_by(owner)) {
    count += static_cast<std::size_t>(std::ranges::count_if(*pods, [&](const std::string& uid) {
      const auto& pod = world.pod(uid)->pod;
      return pod.meta.creation && *pod.meta.creation >= since && is_live(pod) && k8s::asks_for_devices(pod) &&
             !departures_.contains(uid);
    }));
  }
}

void ComingPods::forget_departures(const World& world, const Now& now) {
  std::unordered_map<std::string_view, std::size_t> waiting;
  for (const auto& [uid, departure] : departures_) ++waiting[departure.owner_identity];
  const auto is_over = [&](const std::string& uid, const Departure& departure) {
    const auto* record = world.pod(uid);
    const bool is_there = record != nullptr && is_live(record->pod);
    if (is_there && record->pod.meta.deletion) return false;
    if (is_there) return !leaving_.contains(uid);  // it was not evicted after all
    if (now.mono - departure.since >= kReplacementPatience || is_done(departure.owner, departure.ns, world))
      return true;
    const auto replaced = replaced_.find(departure.owner_identity);
    return replaced != replaced_.end() && replaced->second >= waiting[departure.owner_identity];
  };
  std::vector<std::string> over;  // erased once nobody looks into them any more
  for (const auto& [uid, departure] : departures_) {
    if (is_over(uid, departure)) over.push_back(uid);
  }
  for (const auto& uid : over) {
    const auto found = departures_.find(uid);
    uncounted_.insert(std::move(found->second.owner_identity));
    departures_.erase(found);
  }
}

std::vector<ComingPods::Coming> ComingPods::list(const World& world, const Now& now) const {
  std::vector<const k8s::Pod*> waiting;
  for (const auto& uid : world.unbound()) {
    const auto& pod = world.pod(uid)->pod;
    if (!is_live(pod) || pod.meta.deletion || pod.scheduling->gated || !k8s::asks_for_devices(pod)) continue;
    const auto offered = offered_since_.find(uid);
    if (offered != offered_since_.end() && now.mono - offered->second >= kOfferPatience) continue;
    waiting.push_back(&pod);
  }
  std::ranges::sort(waiting, {}, [](const auto* pod) { return std::tie(pod->meta.creation, pod->meta.uid); });
  std::vector<Coming> coming;
  for (const auto* pod : waiting) {
    coming.push_back({.uid = pod->meta.uid,
                      .ns = pod->meta.ns,
                      .demand = std::make_shared<const Demand>(demand_of_one(*pod, world))});
  }
  auto replaced = replaced_;
  for (const auto& [uid, departure] : departures_) {
    if (is_done(departure.owner, departure.ns, world)) continue;
    auto& there = replaced[departure.owner_identity];
    if (there > 0) {
      --there;
      continue;
    }
    coming.push_back({.uid = {}, .ns = departure.ns, .demand = departure.demand});
  }
  return coming;
}

void ComingPods::note_offered(const std::optional<std::set<std::string>>& uids, const Now& now) {
  if (!uids) return offered_since_.clear();
  for (const auto& uid : *uids) offered_since_.try_emplace(uid, now.mono);
  std::erase_if(offered_since_, [&](const auto& entry) {
    return !uids->contains(entry.first) && now.mono - entry.second < kOfferPatience;
  });
}

void ComingPods::note_crowded(const std::set<std::string>& uids, const Now& now) {
  for (const auto& uid : uids) crowded_since_.try_emplace(uid, now.mono);
}

bool ComingPods::is_past_others(const std::string& uid, const Now& now) const {
  const auto since = crowded_since_.find(uid);
  return since != crowded_since_.end() && now.mono - since->second >= kOthersPatience;
}

std::optional<MonoTime> ComingPods::next_change_at(const Now& now) const {
  Wake wake;
  for (const auto& [uid, since] : crowded_since_) wake.note_after(now.mono, since + kOthersPatience);
  for (const auto& [uid, since] : offered_since_) wake.note_after(now.mono, since + kOfferPatience);
  return wake.at();
}

}  // namespace dhc
