#include "reconcilers/shared/leaving_pods.h"

#include "reconcilers/shared/failure_outlook.h"
#include "reconcilers/shared/job_credit.h"

namespace dhc {

namespace {

/// Of a pod that is going: by eviction, or as somebody deleted it.
bool costs_nothing(const k8s::Job& job, const k8s::Pod& pod) {
  if (!pod.meta.deletion) return outlook_of_eviction(job, pod, false).counts == Counts::Never;
  return outlook_of_loss(job, {.conditions = pod.conditions, .exits = {}}, false) == Counts::Never;
}

}  // namespace

LeavingPods::Losses LeavingPods::of_pod(const std::string& uid, const JobRecord& record) const {
  const auto* known = input_.world.pod(uid);
  if (known == nullptr || known->was_lost || !is_live(known->pod)) return {};
  const auto& pod = known->pod;
  if (pod.meta.deletion || contains(uid) || may_stand(input_.requests.eviction(uid), input_.now))
    return {.going = costs_nothing(record.job, pod) ? 0 : 1};
  const auto* credit = record.credits.find(uid);
  return {.promised = credit != nullptr && credit->state == RetryCredit::State::Given ? 1 : 0};
}

LeavingPods::Losses LeavingPods::of(const JobRecord& record, const std::string& but_uid) {
  const auto [found, is_new] = jobs_.try_emplace(record.job.meta.uid);
  auto& all = found->second;
  const auto& pods = input_.world.pods_of_job(record.job);
  if (is_new) {
    for (const auto& uid : pods) {
      const auto one = of_pod(uid, record);
      all.going += one.going;
      all.promised += one.promised;
    }
  }
  if (!pods.contains(but_uid)) return all;
  const auto own = of_pod(but_uid, record);
  return {.going = all.going - own.going, .promised = all.promised - own.promised};
}

template <class Change>
void LeavingPods::change(const std::string& uid, const Change& change) {
  const auto* known = input_.world.pod(uid);
  const auto* record = known == nullptr ? nullptr : job_of(known->pod, input_.world);
  const auto job = record == nullptr ? jobs_.end() : jobs_.find(record->job.meta.uid);
  if (job == jobs_.end()) return change();
  const auto before = of_pod(uid, *record);
  change();
  const auto after = of_pod(uid, *record);
  job->second.going += after.going - before.going;
  job->second.promised += after.promised - before.promised;
}

bool LeavingPods::insert(const std::string& uid) {
  if (contains(uid)) return false;
  change(uid, [&] { chosen_.insert(uid); });
  return true;
}

void LeavingPods::erase(const std::string& uid) {
  if (!contains(uid)) return;
  change(uid, [&] { chosen_.erase(uid); });
}

}  // namespace dhc
