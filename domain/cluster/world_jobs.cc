// The part of World that knows Jobs: what we wrote on them, their pods, and how those ended.
#include <algorithm>
#include <iterator>
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
/// More labels than this are not kept of a pod that has gone: nobody selects by so many, and who makes pods can write
/// as many as he likes.
constexpr std::size_t kMostLabels = 64;
constexpr std::size_t kLongestLabels = 8UL * 1024;

bool is_job_pod(const k8s::Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

std::int64_t failures_of(const k8s::Job& job) { return job.failed + job.uncounted; }

/// Within the bounds of what is kept of a pod that has gone; none: beyond them.
k8s::StringMap labels_to_keep(const k8s::StringMap& labels) {
  if (labels.size() > kMostLabels) return {};
  std::size_t bytes = 0;
  for (const auto& [key, value] : labels) bytes += key.size() + value.size();
  return bytes > kLongestLabels ? k8s::StringMap() : labels;
}

/// Of a rejected pod of another owner than a Job only what is asked about its node.
k8s::Pod only_rejection(const k8s::Pod& pod) {
  k8s::Pod kept;
  kept.meta.ns = pod.meta.ns;
  kept.meta.name = pod.meta.name;
  kept.meta.uid = pod.meta.uid;
  kept.meta.creation = pod.meta.creation;
  kept.node_name = pod.node_name;
  kept.phase = pod.phase;
  kept.status_reason = pod.status_reason;
  kept.requests = pod.requests;
  return kept;
}

}  // namespace

namespace {

/// What is too long to be ours is kept as an empty text, which is none of ours either.
void cut_records(k8s::Meta& meta) {
  const auto is_too_long = [](const auto& entry) {
    const bool is_record = entry.first == kRetryCreditsAnnotation || entry.first == kLossesAnnotation;
    return is_record && entry.second.size() > kLongestRecord;
  };
  if (std::ranges::none_of(meta.annotations, is_too_long)) return;
  std::vector<k8s::StringMap::value_type> kept(meta.annotations.begin(), meta.annotations.end());
  for (auto& entry : kept) {
    if (is_too_long(entry)) entry.second.clear();
  }
  meta.annotations = k8s::StringMap(std::move(kept));
}

/// How long after it was last seen another one is the same.
constexpr Millis kRevertedMemory = std::chrono::hours(1);

void note_reverted(JobRecord& record, const Now& now) {
  auto& reverted = record.reverted;
  if (reverted && now.mono - reverted->seen_at >= kRevertedMemory) reverted.reset();
  if (record.job.backoff_limit >= record.credits.limit) return;
  const auto& credits = record.credits.credits;
  if (!reverted) reverted = Reverted{.since = credits.empty() ? now.wall : credits.back().at, .seen_at = now.mono};
  reverted->seen_at = now.mono;
}

}  // namespace

bool World::put(k8s::Job&& job, const Now& now) {
  cut_records(job.meta);
  const SharedText uid = job.meta.uid;
  const bool is_new = !jobs_.contains(uid);
  auto& record = jobs_[uid];
  const auto dead = k8s::find(job.meta.labels, kRecreatedFromLabel);
  recreations_.note(uid, dead ? fmt::format("{}/{}", job.meta.ns, *dead) : std::string());
  if (is_repeated(record.job, job)) return false;
  touched_.owner(job.meta.identity());
  const auto credits = k8s::find(job.meta.annotations, kRetryCreditsAnnotation);
  const auto losses = k8s::find(job.meta.annotations, kLossesAnnotation);
  auto parsed = credits ? parse_retry_credits(*credits) : RetryCredits{};
  record.credits_readable = parsed.has_value();
  const auto before = std::exchange(record.credits, std::move(parsed).value_or(RetryCredits{}));
  record.losses = (losses ? parse_losses(*losses) : std::nullopt).value_or(std::vector<JobLoss>{});
  noted_jobs_.note(job.meta.ns, uid, credits.has_value(), !record.losses.empty());
  owner_tree_.remove_owner(record.job.meta);
  owner_tree_.add_owner(job.meta);
  record.job = std::move(job);
  if (is_new) look_again_at_terminating_pods(record.job);
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
  note_reverted(record, now);
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

/// Whether it counts them is known only now.
void World::look_again_at_terminating_pods(const k8s::Job& job) {
  std::ranges::copy_if(pods_of_job(job), std::inserter(dirty_pods_, dirty_pods_.end()),
                       [&](const auto& uid) { return pods_.at(uid).pod.meta.deletion.has_value(); });
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

/// Also of a pod whose kubelet has not named its device, or whose Job is not known yet.
void World::note_failure(PodRecord& record, const Now& now) {
  const auto& pod = record.pod;
  if (!is_job_pod(pod)) return;
  const bool has_failed = pod.phase == k8s::PodPhase::Failed;
  if (!has_failed && !counts_as_it_goes(pod)) {
    record.was_lost = false;
    if (!lost_pods_.empty()) lost_pods_.take_back(pod.meta.controller_identity(), pod.meta.uid);
    return;
  }
  if (std::exchange(record.was_lost, true)) return;
  lost_pods_.note(pod.meta.controller_identity(), pod.meta.uid,
                  {.at = now.mono, .end = {.conditions = pod.conditions, .exits = pod.exits}, .was_seen = has_failed});
}

/// Whether the Job counts the pod as failed from the deletion on, however long it takes to end. **Source:** Kubernetes,
/// job_controller.go, isPodFailed: unless it replaces only what has failed, as with a podFailurePolicy.
bool World::counts_as_it_goes(const k8s::Pod& pod) const {
  if (!pod.meta.deletion || pod.phase == k8s::PodPhase::Succeeded) return false;
  const auto* record = job_of(pod.meta);
  return record != nullptr && !record->job.replaces_when_failed && record->job.failure_rules.empty();
}

/// A Job that was restored may have counted none of them.
void World::note_failures_anew(const Now& now) {
  for (auto& [uid, record] : pods_) {
    record.was_lost = false;
    note_failure(record, now);
  }
}

const std::map<SharedText, LostPod, std::less<>>& World::lost_pods_of(const k8s::Job& job) const {
  return lost_pods_.of(job.meta.identity());
}

void World::note_departure(const PodRecord& record, const Now& now) {
  const auto& pod = record.pod;
  if (!is_job_pod(pod)) return;
  // Also of one that was force-deleted, or whose last version came with its end: with its finalizer gone its Job may
  // have counted it, or not yet.
  if (!record.was_lost && pod.phase != k8s::PodPhase::Succeeded) {
    lost_pods_.note(pod.meta.controller_identity(), pod.meta.uid,
                    {.at = now.mono,
                     .end = {.conditions = pod.conditions, .exits = pod.exits},
                     .was_seen = pod.phase == k8s::PodPhase::Failed});
  }
  if (job_of(pod.meta) == nullptr) return;
  auto& credit_seen = jobs_.at(pod.meta.controller->uid).credit_seen;
  const auto seen = credit_seen.find(pod.meta.uid);
  if (seen == credit_seen.end()) return;
  seen->second.pod_went_at = now.mono;
  seen->second.went_unevicted = is_live(pod) && !was_evicted(pod);
}

void World::drop_job(const SharedText& uid) {
  if (const auto found = jobs_.find(uid); found != jobs_.end()) {
    const auto& meta = found->second.job.meta;
    touched_.owner(meta.identity());
    owner_tree_.remove_owner(meta);
    noted_jobs_.drop(meta.ns, uid);
    const auto dead = recreations_.dead_of(uid);
    recreations_.drop(uid, meta.identity());
    if (job(std::string_view(dead).substr(dead.find('/') + 1)) != nullptr) recreations_.keep(dead);
    jobs_.erase(found);
  }
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
  ending.pod.meta.labels = labels_to_keep(pod.meta.labels);
  ending.node_had_room = rejected && had_room(pod);
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
  const std::string uid = ending.pod.meta.uid;
  auto& order = was_rejected(ending.pod) ? rejection_order_ : ending_order_;
  const auto forgotten = order.add(ending.pod.meta.ns, ending.at.mono, uid);
  endings_.emplace(uid, std::move(ending));
  if (forgotten) endings_.erase(*forgotten);
}

void World::note_admitted(const k8s::Pod& pod) {
  for (const auto& [resource, amount] : pod.requests) {
    auto& most = most_admitted_[resource];
    most = std::max(most, amount);
  }
}

/// Whether the node had what the pod asked for, by its own word and by what other pods there ask for: a kubelet rightly
/// rejects who binds himself to a node and asks for more. And whether anybody has ever been given so many: a plugin may
/// refuse several of what it shares. **Source:** NVIDIA's device plugin, failRequestsGreaterThanOne.
bool World::had_room(const k8s::Pod& pod) const {
  const auto* known = node(pod.node_name);
  if (known == nullptr) return false;  // what it had is not known
  for (const auto& [resource, amount] : pod.requests) {
    const auto listed = std::ranges::find(known->allocatable, resource, &k8s::ResourceAmount::resource);
    auto free = listed == known->allocatable.end() ? std::int64_t{0} : listed->amount;
    for (const auto& uid : pods_on(pod.node_name)) {
      const auto& other = this->pod(uid)->pod;
      // Who was made later, such as its replacement, has taken nothing from it.
      const bool is_later = other.meta.creation && pod.meta.creation && *other.meta.creation > *pod.meta.creation;
      if (other.meta.uid == pod.meta.uid || is_later || !is_live(other)) continue;
      const auto asked = std::ranges::find(other.requests, resource, &k8s::ResourceAmount::resource);
      if (asked != other.requests.end()) free -= std::min(asked->amount, kMostRequested);
    }
    const auto most = most_admitted_.find(resource);
    if (amount > free || amount > std::max<std::int64_t>(most == most_admitted_.end() ? 0 : most->second, 1))
      return false;
  }
  return true;
}

void World::forget_endings(const Now& now) {
  for (auto* order : {&ending_order_, &rejection_order_}) {
    for (const auto& uid : order->take_until(now.mono - kEndingMemory)) endings_.erase(uid);
  }
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
