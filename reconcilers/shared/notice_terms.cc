#include "reconcilers/shared/notice_terms.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"

namespace dhc {

namespace {

using State = NoticeTerms::State;

void note_done(const NoticeAnswer& answer, const std::optional<Notice>& shown, const Now& now, NoticeTerms& terms) {
  if (!answer.time) {
    // One of an earlier incident may still stand there, and says nothing of this one.
    const bool is_first = shown && shown->at == terms.at && shown->number <= 1;
    if (is_first) {
      terms.state = State::Done;
    } else {
      terms.refused = "this is not the pod's first notice: write done: TIME, with the present time";
    }
    return;
  }
  if (const auto time = operator_time(*answer.time, now.wall); !time) {
    terms.refused = time.error();
    terms.effective_at = answer.time;
  } else if (*answer.time < terms.at) {
    terms.refused = fmt::format("it is older than the notice of {}", format_rfc3339(terms.at));
  } else {
    terms.state = State::Done;
  }
}

void note_extension(WallTime asked, Millis most, NoticeTerms& terms) {
  const auto latest = terms.until + most;
  if (asked > latest) terms.asks_beyond = asked;
  terms.until = std::max(terms.until, std::min(asked, latest));
}

/// What is answered counts for a notice that the pod shows.
void note_answer(const k8s::Pod& pod, const NoticeRules& rules, const std::optional<Notice>& shown, const Now& now,
                 NoticeTerms& terms) {
  const auto said = k8s::find(pod.meta.annotations, kNoticeResponseAnnotation);
  if (!said) return;
  const auto answer = read_answer(*said);
  if (!answer) {
    terms.refused = answer.error();
  } else if (answer->kind == NoticeAnswer::Kind::ExtendUntil) {
    note_extension(*answer->time, rules.extend_up_to, terms);
  } else {
    note_done(*answer, shown, now, terms);
  }
}

}  // namespace

WallTime opened_at(const AffectedPod& affected) {
  return std::chrono::floor<Seconds>(affected.since.wall + affected.policy->after);
}

WallTime eviction_due_at(const AffectedPod& affected) {
  return std::chrono::floor<Seconds>(affected.since.wall) +
         std::chrono::ceil<Seconds>(affected.policy->after + affected.policy->evict->after);
}

std::optional<Notice> notice_on(const k8s::Pod& pod) {
  const auto text = k8s::find(pod.meta.annotations, kNoticeAnnotation);
  return text ? read_notice(*text) : std::nullopt;
}

std::optional<NoticeTerms> notice_terms(const AffectedPod& affected, const PlanInput& input) {
  if (!affected.policy->evict || !affected.policy->evict->notice || !affected.open) return std::nullopt;
  const auto& rules = *affected.policy->evict->notice;
  const auto& pod = affected.pod();
  const WallTime opened = opened_at(affected);
  const WallTime now = std::chrono::floor<Seconds>(input.now.wall);
  NoticeTerms terms{.at = opened};
  std::optional<Notice> shown;
  if (affected.mode == Mode::Enforce) {
    const auto remembered = affected.record->told.noticed();
    terms.at = remembered.value_or(input.requests.notices().sent_at(pod.meta.uid).value_or(now));
    terms.at = std::max(std::min(terms.at, now), std::min(opened, now));
    terms.is_shown = remembered == terms.at;
    const auto seen = k8s::find(pod.meta.annotations, kNoticeAnnotation);
    terms.is_contested = input.requests.notices().is_contested(pod.meta.uid, seen.value_or(""));
    shown = notice_on(pod);
  }
  terms.until = std::max(eviction_due_at(affected), terms.at + std::chrono::ceil<Seconds>(rules.deadline));
  if (terms.is_shown) note_answer(pod, rules, shown, input.now, terms);
  const bool is_ours = terms.is_shown && shown && shown->evict && shown->at == terms.at;
  const bool same_device = is_ours && shown->device == to_string(affected.key);
  if (terms.state == State::Waits && same_device && affected.held_device->restarts > shown->restarts)
    terms.state = State::Restarted;
  if (terms.state == State::Waits && input.now.wall >= terms.until) terms.state = State::Passed;
  return terms;
}

}  // namespace dhc
