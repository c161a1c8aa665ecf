#include "domain/cluster/disruption.h"

#include <algorithm>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

bool is_disruption(const k8s::Condition& condition) {
  return condition.type == kDisruptionTarget && condition.status == "True";
}

bool was_disrupted_by(const k8s::Pod& pod, std::string_view reason) {
  return std::ranges::any_of(pod.conditions, [&](const k8s::Condition& condition) {
    return is_disruption(condition) && condition.reason == reason;
  });
}

}  // namespace

bool was_disrupted(const k8s::Pod& pod) { return std::ranges::any_of(pod.conditions, is_disruption); }

bool was_evicted(const k8s::Pod& pod) { return was_disrupted_by(pod, kEvictedByApi); }

bool was_taken_for_taint(const k8s::Pod& pod) { return was_disrupted_by(pod, kDeletedForTaint); }

bool was_taken_otherwise(const k8s::Pod& pod) {
  return (was_disrupted(pod) || pod.meta.deletion) && !was_taken_for_taint(pod);
}

WallTime asked_to_end_at(const k8s::Pod& pod) {
  constexpr std::int64_t kLongestGrace = Seconds(std::chrono::years(10)).count();
  return *pod.meta.deletion -
         Seconds(std::clamp<std::int64_t>(pod.meta.deletion_grace_seconds.value_or(0), 0, kLongestGrace));
}

WallTime server_now(const World& world, const Now& now) {
  const auto ahead = now.wall - world.ours(now.wall);
  return std::chrono::floor<Seconds>(now.wall + ahead);
}

bool was_rejected(const k8s::Pod& pod) {
  return pod.phase == k8s::PodPhase::Failed && pod.status_reason == kAdmissionError;
}

}  // namespace dhc
