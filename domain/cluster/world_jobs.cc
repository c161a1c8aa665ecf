// The part of World that knows Jobs: what we wrote on them, their pods, and how those ended.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/disruption.h"
#include "domain/cluster/repeated.h"
#include "domain/cluster/world.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

/// A rejected pod that was made longer ago than this is no news to a process that has just begun.
constexpr Millis kRecent = std::chrono::minutes(10);
/// The newest of each are remembered: a kubelet that rejects everything makes thousands of dead pods in minutes.
constexpr std::size_t kMostEndings = 5000;
constexpr std::size_t kMostRejectedOnNode = 1000;

bool is_job_pod(const k8s::Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

std::int64_t failures_of(const k8s::Job& job) { return job.failed + job.uncounted; }

/// Of a rejected pod of another owner than a Job only what is asked about its node.
k8s::Pod only_rejection(const k8s::Pod& pod) {
  k8s::Pod kept;
  kept.meta.ns = pod.meta.ns;
  kept.meta.name = pod.meta.name;
  kept.meta.uid = pod.meta.uid;
  kept.meta.creation = pod.meta.creation;
  kept.meta.labels = pod.meta.labels;
  kept.node_name = pod.node_name;
  kept.phase = pod.phase;
  kept.status_reason = pod.status_reason;
  kept.requests = pod.requests;
  return kept;
}

}  // namespace

bool World::put(k8s::Job&& job, const Now& now) {
  const SharedText uid = job.meta.uid;
  auto& record = jobs_[uid];
  if (const auto dead = k8s::find(job.meta.labels, kRecreatedFromLabel))
    recreations_.insert(fmt::format("{}/{}", job.meta.ns, *dead));
  if (is_repeated(record.job, job)) return false;
  touched_.owner(job.meta.identity());
  const auto credits = k8s::find(job.meta.annotations, kRetryCreditsAnnotation);
  const auto losses = k8s::find(job.meta.annotations, kLossesAnnotation);
  if (credits || losses) {
    noted_jobs_.insert(uid);
  } else {
    noted_jobs_.erase(uid);
  }
  auto parsed = credits ? parse_retry_credits(*credits) : RetryCredits{};
  record.credits_readable = parsed.has_value();
  const auto before = std::exchange(record.credits, std::move(parsed).value_or(RetryCredits{}));
  record.losses = (losses ? parse_losses(*losses) : std::nullopt).value_or(std::vector<JobLoss>{});
  owner_tree_.remove_owner(record.job.meta);
  owner_tree_.add_owner(job.meta);
  record.job = std::move(job);
  note_removed(record, before);
  for (auto& [pod, removed] : record.removed) {
    if (record.job.backoff_limit < removed.limit) {
      removed.seen_at = MonoTime::max();
    } else if (removed.seen_at == MonoTime::max()) {
      removed.seen_at = now.mono;
    }
  }
  for (const auto& loss : record.losses) {
    if (const auto ending = endings_.find(loss.pod_uid); ending != endings_.end()) ending->second.told = loss.what;
  }
  // A limit that was lowered again begins anew: the Job controller may still see the lower one after it is raised.
  if (record.job.backoff_limit < record.credits.limit) record.credit_seen.clear();
  std::erase_if(record.credit_seen, [&](const auto& seen) { return record.credits.find(seen.first) == nullptr; });
  if (record.job.backoff_limit < record.credits.limit) return true;
  for (const auto& credit : record.credits.credits) {
    auto& seen =
        record.credit_seen.try_emplace(credit.pod_uid, CreditSeen{.at = now.mono, .counted = failures_of(record.job)})
            .first->second;
    seen.suspended = seen.suspended || record.job.suspended;
  }
  return true;
}

void World::note_removed(JobRecord& record, const RetryCredits& before) const {
  const auto is_remembered = [&](const std::string& uid) { return pods_.contains(uid) || endings_.contains(uid); };
  std::erase_if(record.removed, [&](const auto& entry) {
    return record.credits.find(entry.first) != nullptr || !is_remembered(entry.first);
  });
  for (const auto& credit : before.credits) {
    // An unspent one moves to another pod, or is taken back, by ourselves.
    if (credit.state == RetryCredit::State::Unspent || record.credits.find(credit.pod_uid) != nullptr) continue;
    if (!is_remembered(credit.pod_uid)) continue;
    const auto seen = record.credit_seen.find(credit.pod_uid);
    const auto at = seen == record.credit_seen.end() ? MonoTime::max() : seen->second.at;
    record.removed.try_emplace(credit.pod_uid, RemovedCredit{.limit = credit.limit, .seen_at = at});
  }
}

void World::note_departure(const k8s::Pod& pod) {
  if (!is_job_pod(pod) || !is_live(pod) || was_evicted(pod)) return;
  if (job_of(pod.meta) == nullptr) return;
  auto& credit_seen = jobs_.at(pod.meta.controller->uid).credit_seen;
  const auto seen = credit_seen.find(pod.meta.uid);
  if (seen != credit_seen.end()) seen->second.pod_went = true;
}

void World::drop_job(const SharedText& uid) {
  if (const auto found = jobs_.find(uid); found != jobs_.end()) {
    touched_.owner(found->second.job.meta.identity());
    owner_tree_.remove_owner(found->second.job.meta);
    jobs_.erase(found);
  }
  noted_jobs_.erase(uid);
}

bool World::put(k8s::Owner&& owner) {
  const SharedText uid = owner.meta.uid;
  auto& known = owners_[uid];
  if (is_repeated(known, owner)) return false;
  touched_.owner(owner.meta.identity());
  owner_tree_.remove_owner(known.meta);
  owner_tree_.add_owner(owner.meta);
  known = std::move(owner);
  return true;
}

void World::drop_owner(const std::string& uid) {
  const auto found = owners_.find(uid);
  if (found == owners_.end()) return;
  touched_.owner(found->second.meta.identity());
  owner_tree_.remove_owner(found->second.meta);
  owners_.erase(found);
}

void World::index_owned_pod(const k8s::Pod& pod, bool add) {
  if (!pod.meta.controller) return;
  auto& by_owner = is_job_pod(pod) ? job_pods_ : other_pods_;
  const auto identity = pod.meta.controller_identity();
  auto known = by_owner.find(identity);
  if (known == by_owner.end()) known = by_owner.try_emplace(identity).first;
  // Every index holds the same text.
  const SharedText owner = known->first;
  auto& pods = known->second;
  add ? owner_tree_.add_pod(pod.meta, owner) : owner_tree_.remove_pod(pod.meta, owner);
  if (add) {
    pods.insert(pod.meta.uid);
  } else {
    pods.erase(pod.meta.uid);
  }
  if (pods.empty()) by_owner.erase(known);
}

void World::note_ending(const PodRecord& record, const Now& now) {
  const auto& pod = record.pod;
  if (endings_.contains(pod.meta.uid)) return;
  const bool rejected = was_rejected(pod) && pod.meta.creation && now.wall - ours(*pod.meta.creation) < kRecent;
  // An evicted pod that succeeded tells everything itself; of the others only who saw it run knows the device.
  const bool evicted_well = pod.phase == k8s::PodPhase::Succeeded && was_evicted(pod) &&
                            (k8s::asks_for_devices(pod) || !record.held_devices.empty());
  const bool died = pod.phase == k8s::PodPhase::Failed && record.was_live && !record.held_devices.empty();
  if (!rejected && !(is_job_pod(pod) && (evicted_well || died))) return;
  const bool of_job = is_job_pod(pod);
  PodEnding ending{.pod = of_job ? pod : only_rejection(pod), .devices = {}, .at = moment_of(now), .told = {}};
  for (const auto& held_device : record.held_devices) {
    const auto* state = tracker_.find(held_device.key);
    const auto* word = tracker_.other_word_of(held_device.key);
    const bool is_said = word != nullptr && std::ranges::binary_search(word->witnesses, pod.meta.uid);
    ending.devices.push_back({.key = held_device.key,
                              .was_unhealthy = state != nullptr && state->is_witness(pod.meta.uid),
                              .message = state == nullptr ? SharedText() : state->message,
                              .taints = driver_taints_.standing(held_device.key),
                              .other_word = is_said ? word->word : SharedText(),
                              .other_message = is_said ? word->message : SharedText()});
  }
  if (of_job) ending.told = told_of(pod);
  if (const auto ailing = ailing_.find(pod.meta.uid); ailing != ailing_.end() && died)
    add_ailing(ailing->second, ending);
  keep_ending(std::move(ending));
}

std::string World::told_of(const k8s::Pod& pod) const {
  const auto* record = job_of(pod.meta);
  if (record == nullptr) return {};
  const auto loss = std::ranges::find(record->losses, pod.meta.uid, &JobLoss::pod_uid);
  return loss == record->losses.end() ? std::string() : loss->what;
}

void World::keep_ending(PodEnding ending) {
  const bool of_job = is_job_pod(ending.pod);
  auto& order = ending_order_[of_job ? SharedText() : ending.pod.node_name];
  const std::string uid = ending.pod.meta.uid;
  order.emplace(ending.at.mono, uid);
  endings_.emplace(uid, std::move(ending));
  if (order.size() <= (of_job ? kMostEndings : kMostRejectedOnNode)) return;
  endings_.erase(order.begin()->second);
  order.erase(order.begin());
}

void World::forget_endings(const Now& now) {
  for (auto& [group, order] : ending_order_) {
    while (!order.empty() && now.mono - order.begin()->first >= kEndingMemory) {
      endings_.erase(order.begin()->second);
      order.erase(order.begin());
    }
  }
  std::erase_if(ending_order_, [](const auto& entry) { return entry.second.empty(); });
}

const JobRecord* World::job(std::string_view uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

const JobRecord* World::job(std::string_view ns, std::string_view uid) const {
  const auto* record = job(uid);
  return record != nullptr && record->job.meta.ns == ns ? record : nullptr;
}

const JobRecord* World::job_of(const k8s::Meta& meta) const {
  return meta.controller ? job(meta.ns, meta.controller->uid) : nullptr;
}

const SortedTexts& World::pods_of_job(const k8s::Job& job) const { return *pods_owned_by(job.meta.identity()).front(); }

std::array<const SortedTexts*, 2> World::pods_owned_by(std::string_view identity) const {
  const auto in = [&](const auto& by_owner) {
    const auto found = by_owner.find(identity);
    return found == by_owner.end() ? &nobody_ : &found->second;
  };
  return {in(job_pods_), in(other_pods_)};
}

}  // namespace dhc
