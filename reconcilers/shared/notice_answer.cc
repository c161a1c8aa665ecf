#include "reconcilers/shared/notice_answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"

namespace dhc {

namespace {

using State = AnsweredNotice::State;

void note_done(const NoticeAnswer& answer, const GivenNotice& given, const std::optional<Notice>& shown, WallTime now,
               AnsweredNotice& found) {
  if (!answer.time) {
    // One of an earlier incident may still stand there, and says nothing of this one.
    const bool is_first = shown && shown->at == given.at && shown->number <= 1;
    if (is_first) {
      found.state = State::Done;
    } else {
      found.refused = "this is not the pod's first notice: write done: TIME, with the present time";
    }
    return;
  }
  if (const auto time = operator_time(*answer.time, now); !time) {
    found.refused = time.error();
    found.effective_at = answer.time;
  } else if (*answer.time < given.at) {
    found.refused = fmt::format("it is older than the notice of {}", format_rfc3339(given.at));
  } else {
    found.state = State::Done;
  }
}

void note_extension(WallTime asked, const GivenNotice& given, AnsweredNotice& found) {
  const auto latest = given.deadline + given.extend_up_to;
  if (asked > latest) found.asks_beyond = asked;
  found.until = std::max(given.deadline, std::min<WallTime>(asked, latest));
}

void note_answer(const k8s::Pod& pod, const GivenNotice& given, const std::optional<Notice>& shown, WallTime now,
                 AnsweredNotice& found) {
  const auto said = k8s::find(pod.meta.annotations, kNoticeResponseAnnotation);
  if (!said) return;
  const auto answer = read_answer(*said);
  if (!answer) {
    found.refused = answer.error();
  } else if (answer->kind == NoticeAnswer::Kind::ExtendUntil) {
    note_extension(*answer->time, given, found);
  } else {
    note_done(*answer, given, shown, now, found);
  }
}

}  // namespace

AnsweredNotice answered(const GivenNotice& given, const k8s::Pod& pod, WallTime now) {
  AnsweredNotice found{.until = given.deadline};
  // What is answered counts for a notice that the pod shows.
  if (given.is_shown) {
    const auto shown = notice_on(pod);
    note_answer(pod, given, shown, now, found);
    const bool is_ours = shown && shown->evict && shown->at == given.at && shown->device == given.device;
    if (found.state == State::Waits && is_ours && given.restarts > shown->restarts) found.state = State::Restarted;
  }
  if (found.state == State::Waits && now - given.clock_jump >= found.until) found.state = State::Passed;
  return found;
}

std::optional<Notice> notice_on(const k8s::Pod& pod) {
  const auto text = k8s::find(pod.meta.annotations, kNoticeAnnotation);
  return text ? read_notice(*text) : std::nullopt;
}

}  // namespace dhc
