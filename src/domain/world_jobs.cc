// The part of World that knows Jobs: what we wrote on them, their pods, and how those ended.
#include <algorithm>
#include <utility>

#include "domain/black_hole.h"
#include "domain/names.h"
#include "domain/world.h"

namespace dhc {

namespace {

constexpr Millis kEndingMemory = std::chrono::hours(1);
/// A rejected pod that was made longer ago than this is no news to a process that has just begun.
constexpr Millis kRecent = std::chrono::minutes(10);

bool is_job_pod(const k8s::Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

bool was_evicted(const k8s::Pod& pod) {
  return std::ranges::any_of(pod.conditions, [](const k8s::Condition& condition) {
    return condition.type == kDisruptionTarget && condition.status == "True" && condition.reason == kEvictedByApi;
  });
}

}  // namespace

void World::put(k8s::Job&& job, const Now& now) {
  const std::string uid = job.meta.uid;
  auto& record = jobs_[uid];
  const auto credits = k8s::find(job.meta.annotations, kRetryCreditsAnnotation);
  const auto losses = k8s::find(job.meta.annotations, kLossesAnnotation);
  if (credits || losses) {
    noted_jobs_.insert(uid);
  } else {
    noted_jobs_.erase(uid);
  }
  if (const auto dead = k8s::find(job.meta.labels, kRecreatedFromLabel)) recreations_.emplace(*dead);
  auto parsed = credits ? parse_retry_credits(*credits) : RetryCredits{};
  record.credits_readable = parsed.has_value();
  record.credits = std::move(parsed).value_or(RetryCredits{});
  record.losses = (losses ? parse_losses(*losses) : std::nullopt).value_or(std::vector<JobLoss>{});
  record.job = std::move(job);
  // A limit that was lowered again begins anew: the Job controller may still see the lower one after it is raised.
  if (record.job.backoff_limit < record.credits.limit) record.credit_seen.clear();
  std::erase_if(record.credit_seen, [&](const auto& seen) { return record.credits.find(seen.first) == nullptr; });
  if (record.job.backoff_limit < record.credits.limit) return;
  for (const auto& credit : record.credits.credits) record.credit_seen.try_emplace(credit.pod_uid, now.mono);
}

void World::drop_job(const std::string& uid) {
  jobs_.erase(uid);
  noted_jobs_.erase(uid);
}

void World::index_job_pod(const k8s::Pod& pod, bool add) {
  if (!is_job_pod(pod)) return;
  auto& pods = job_pods_[pod.meta.controller->uid];
  if (add) {
    pods.insert(pod.meta.uid);
  } else {
    pods.erase(pod.meta.uid);
  }
  if (pods.empty()) job_pods_.erase(pod.meta.controller->uid);
}

void World::note_ending(const PodRecord& record, const Now& now) {
  const auto& pod = record.pod;
  if (endings_.contains(pod.meta.uid)) return;
  const bool rejected = was_rejected(pod) && pod.meta.creation && now.wall - *pod.meta.creation < kRecent;
  // An evicted pod that succeeded tells everything itself; of the others only who saw it run knows the device.
  const bool evicted_well = pod.phase == k8s::PodPhase::Succeeded && was_evicted(pod);
  const bool died = pod.phase == k8s::PodPhase::Failed && record.was_live && !record.holdings.empty();
  if (!rejected && !(is_job_pod(pod) && (evicted_well || died))) return;
  PodEnding ending{.pod = pod, .devices = {}, .at = moment_of(now)};
  for (const auto& holding : record.holdings) {
    const auto* state = tracker_.find(holding.key);
    ending.devices.push_back({.key = holding.key, .was_unhealthy = state != nullptr && state->unhealthy_since});
  }
  endings_.emplace(pod.meta.uid, std::move(ending));
}

void World::forget_endings(const Now& now) {
  std::erase_if(endings_, [&](const auto& entry) { return now.mono - entry.second.at.mono >= kEndingMemory; });
}

const JobRecord* World::job(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

const std::set<std::string>& World::pods_of_job(const std::string& uid) const {
  const auto found = job_pods_.find(uid);
  return found == job_pods_.end() ? nobody_ : found->second;
}

}  // namespace dhc
