#include "reconcilers/eviction/notice_gate.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "reconcilers/shared/notice_terms.h"

namespace dhc::eviction {

namespace {

using State = NoticeTerms::State;

std::string time_left(const NoticeTerms& terms, const AffectedPod& affected) {
  auto words = fmt::format("told at {}, it has until {}", format_rfc3339(terms.given.at), format_rfc3339(terms.until));
  if (terms.asks_beyond) {
    words += fmt::format("; it asks to stay until {}, which is beyond evict.notice.extendUpTo of policy {}",
                         format_rfc3339(*terms.asks_beyond), affected.policy->name);
  }
  if (terms.is_contested) {
    words +=
        fmt::format("; another client owns its annotation {}: its program does not see the notice", kNoticeAnnotation);
  }
  return words;
}

std::string time_to_come(const AffectedPod& affected) {
  return fmt::format("it is to be told, and has {} s from then",
                     std::chrono::ceil<Seconds>(affected.policy->evict->notice->deadline).count());
}

std::optional<HoldReason> remark_of(const NoticeTerms& terms) {
  switch (terms.state) {
    case State::Waits:
      break;
    case State::Done:
      return HoldReason{.reason = Reason::AnsweredDone,
                        .message = fmt::format("its annotation {} says that it is done", kNoticeResponseAnnotation),
                        .until = {}};
    case State::Restarted:
      return HoldReason{.reason = Reason::AnsweredDone,
                        .message = "a container that holds the device has been restarted since the notice",
                        .until = {}};
    case State::Passed:
      return HoldReason{.reason = Reason::DeadlinePassed,
                        .message = fmt::format("told at {}, it had until {}", format_rfc3339(terms.given.at),
                                               format_rfc3339(terms.until)),
                        .until = {}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HoldReason> has_time_left(const AffectedPod& affected, const PlanInput& input) {
  const auto terms = notice_terms(affected, input);
  if (!terms || terms->state != State::Waits) return std::nullopt;
  // An answer that is dated ahead counts once its time has come.
  const auto over = terms->until + terms->given.clock_jump;
  const auto next = std::min(over, terms->effective_at.value_or(over));
  const bool is_told = terms->given.is_shown || affected.mode != Mode::Enforce;
  return HoldReason{.reason = is_told ? Reason::WaitingForCheckpoint : Reason::Noticed,
                    .message = terms->is_begun ? time_left(*terms, affected) : time_to_come(affected),
                    .until = input.now.mono + std::chrono::ceil<Millis>(next - input.now.wall)};
}

std::optional<HoldReason> waits_for_checkpoint(const Unit& unit, const GangUnit* gang, const PlanInput& input) {
  std::optional<HoldReason> longest;
  bool is_begun = true;
  for (const auto* member : unit.affected_pods) {
    auto hold = has_time_left(*member, input);
    if (!hold || (longest && *longest->until >= *hold->until)) continue;
    const auto& name = member->pod().meta.name;
    if (gang != nullptr) {
      hold->message = fmt::format("pod {} of {}: {}", name, gang->gang.words, hold->message);
    } else if (unit.affected_pods.size() > 1) {
      hold->message = "holder " + name + ": " + hold->message;
    }
    longest = std::move(hold);
    is_begun = notice_terms(*member, input)->is_begun;
  }
  // Whatever holds the notice back: its time does not run yet.
  if (longest && !is_begun) longest->until.reset();
  return longest;
}

bool changes_with_time(const AffectedPod& affected, const PlanInput& input) {
  const auto terms = notice_terms(affected, input);
  return terms && affected.mode == Mode::Enforce && (!terms->given.is_shown || terms->refused);
}

std::vector<HoldReason> remarks_on_notice(const AffectedPod& affected, const PlanInput& input) {
  std::vector<HoldReason> remarks;
  const auto terms = notice_terms(affected, input);
  if (!terms || affected.mode != Mode::Enforce) return remarks;
  if (auto remark = remark_of(*terms)) remarks.push_back(*std::move(remark));
  if (terms->refused) {
    remarks.push_back(
        {.reason = Reason::AnnotationRefused,
         .message = fmt::format("annotation {} has no effect: {}", kNoticeResponseAnnotation, *terms->refused),
         .until = {}});
  }
  return remarks;
}

}  // namespace dhc::eviction
