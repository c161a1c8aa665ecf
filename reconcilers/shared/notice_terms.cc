#include "reconcilers/shared/notice_terms.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "domain/contract/names.h"

namespace dhc {

namespace {

constexpr Seconds kSetBack(5);

}  // namespace

WallTime opened_at(const AffectedPod& affected) {
  return std::chrono::floor<Seconds>(affected.since.wall + affected.policy->after);
}

WallTime eviction_due_at(const AffectedPod& affected) {
  return std::chrono::floor<Seconds>(affected.since.wall) +
         std::chrono::ceil<Seconds>(affected.policy->after + affected.policy->evict->after);
}

namespace {

/// Whoever was told with the other, late or not, goes with it.
std::optional<NoticeTerms> terms_with(const AffectedPod& affected, const PlanInput& input) {
  auto terms = notice_terms(*affected.goes_with, input);
  if (!terms) return std::nullopt;
  const auto& pod = affected.pod();
  auto given = std::move(terms->given);
  const auto shown = notice_on(pod);
  given.is_shown =
      affected.mode == Mode::Enforce && shown && shown->evict && !shown->gang.empty() && shown->at == given.at;
  given.restarts = 0;  // of containers that hold no bad device nobody counts them
  const auto seen = k8s::find(pod.meta.annotations, kNoticeAnnotation);
  const bool is_contested = input.requests.notices().is_contested(pod.meta.uid, seen.value_or(""));
  const auto found = answered(given, pod, input.now.wall);
  return NoticeTerms{found, std::move(given), terms->is_begun, is_contested};
}

}  // namespace

std::optional<NoticeTerms> notice_terms(const AffectedPod& affected, const PlanInput& input) {
  if (affected.goes_with == &affected) return std::nullopt;  // of a round that has begun nothing is asked again
  if (affected.goes_with != nullptr) return terms_with(affected, input);
  if (!affected.policy->evict || !affected.policy->evict->notice || !affected.open) return std::nullopt;
  const auto& rules = *affected.policy->evict->notice;
  const auto& pod = affected.pod();
  const WallTime opened = opened_at(affected);
  GivenNotice given{.at = opened,
                    .extend_up_to = rules.extend_up_to,
                    .device = to_string(affected.key),
                    .restarts = affected.held_device->restarts};
  bool is_begun = affected.mode != Mode::Enforce;
  bool is_contested = false;
  if (affected.mode == Mode::Enforce) {
    given.clock_jump = input.requests.notices().clock_jump(pod.meta.uid, input.now);
    const WallTime now = std::chrono::floor<Seconds>(input.now.wall - given.clock_jump);
    const auto& told = affected.record->told;
    const auto remembered = told ? told->noticed() : std::nullopt;
    const auto sent = input.requests.notices().sent_at(pod.meta.uid);
    is_begun = remembered || sent;
    given.at = remembered.value_or(sent.value_or(now));
    given.at = std::min(given.at, now);
    // Not of an earlier incident. A clock that was set back a little must not make the time move along with it.
    if (given.at + kSetBack < opened) given.at = std::min(opened, now);
    given.is_shown = remembered == given.at;
    const auto seen = k8s::find(pod.meta.annotations, kNoticeAnnotation);
    is_contested = input.requests.notices().is_contested(pod.meta.uid, seen.value_or(""));
  }
  given.deadline = std::max(eviction_due_at(affected), given.at + std::chrono::ceil<Seconds>(rules.deadline));
  const auto found = answered(given, pod, input.now.wall);
  return NoticeTerms{found, std::move(given), is_begun, is_contested};
}

}  // namespace dhc
