#include "reconcilers/eviction/going.h"

#include <fmt/format.h>

#include "reconcilers/eviction/limits.h"

namespace dhc::eviction {

HoldReason departing(const k8s::Pod& pod, const PlanInput& input) {
  const auto* attempt = input.requests.eviction(pod.meta.uid);
  if (attempt == nullptr || attempt->state == Attempt::State::Failed) {
    return {.reason = Reason::AlreadyTerminating, .message = "another client has deleted the pod", .until = {}};
  }
  const MonoTime until = gone_by(*attempt, pod);
  if (attempt->state == Attempt::State::Accepted && input.now.mono >= until) {
    return {.reason = Reason::StuckTerminating,
            .message = "evicted, and still there two minutes after its grace period; it no longer counts as in flight",
            .until = {}};
  }
  if (input.now.mono >= slot_until(*attempt, pod, input.policy.limits)) {
    return {.reason = Reason::Evicted,
            .message =
                "evicted, terminating; its grace period goes on, and it no longer counts as in flight "
                "(evictions.countedGrace)",
            .until = until};
  }
  return {.reason = Reason::Evicted, .message = "evicted, terminating", .until = until};
}

bool is_under_way(const k8s::Pod& pod, const PlanInput& input) {
  const auto* attempt = input.requests.eviction(pod.meta.uid);
  return attempt != nullptr && attempt->state != Attempt::State::Failed && !accepted_in_vain(*attempt, pod, input);
}

std::optional<HoldReason> in_vain(const k8s::Pod& pod, const PlanInput& input) {
  const auto* attempt = input.requests.eviction(pod.meta.uid);
  if (attempt == nullptr) return std::nullopt;
  const int times = attempt->in_vain + (accepted_in_vain(*attempt, pod, input) ? 1 : 0);
  if (times == 0) return std::nullopt;
  return HoldReason{
      .reason = Reason::NotTerminating,
      .message = fmt::format("the API server has accepted the eviction {} time(s), and grace period and two "
                             "minutes later the pod has no deletionTimestamp: it is read and asked for again",
                             times),
      .until = {}};
}

}  // namespace dhc::eviction
