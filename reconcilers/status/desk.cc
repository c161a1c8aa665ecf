#include "reconcilers/status/desk.h"

#include <algorithm>
#include <utility>

#include "domain/contract/cluster_status.h"
#include "domain/contract/names.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/hold_reasons.h"
#include "reconcilers/status/summary.h"

namespace dhc::status {

MonoTime Desk::next_write_at() const {
  auto at = sent_at_ ? *sent_at_ + kShortestPause : MonoTime::min();
  if (paid_until_) at = std::max(at, *paid_until_ - (kBurst - 1) * kRefill);
  return at;
}

Planned<WriteStatus> Desk::plan(const PlanInput& input, std::span<const Verdict> verdicts) {
  Planned<WriteStatus> planned;
  const auto& ns = input.policy.own_namespace;
  if (!input.policy.status || ns.empty()) return planned;
  const auto now = input.now.mono;
  const auto* attempt = input.requests.write(std::string(kStatusKey));
  auto at = next_write_at();
  if (attempt != nullptr && attempt->state == Attempt::State::Failed) {
    at = std::max(at, attempt->not_before);
    planned.verdicts.push_back(verdict_of(
        {.subject = {.kind = "ConfigMap", .ns = ns, .name = std::string(kStatusName), .uid = {}},
         .device = {},
         .policy = {},
         .since = wall_of(attempt->first_at, input.now)},
        {.reason = Reason::StatusNotWritten, .message = words_of_failure(*attempt), .until = at}, input.now));
  }
  if (attempt != nullptr && attempt->state == Attempt::State::Sending) return planned;
  const Signs signs{.revision = input.incidents.revision(),
                    .verdicts = verdicts.size(),
                    .not_healthy = input.world.tracker().not_healthy().size()};
  // To look costs a walk over all verdicts: at once where something is likely to be new, else from time to time.
  if (signs == signs_ && looked_at_ && now < *looked_at_ + kShortestPause) {
    planned.wake_at = *looked_at_ + kShortestPause;
    return planned;
  }
  if (now < at) {
    planned.wake_at = at;
    return planned;
  }
  looked_at_ = now;
  signs_ = signs;
  auto text = status_text(status_of(input, verdicts));
  if (accepted_ == text && now < *accepted_at_ + kRepeat) {
    planned.wake_at = now + kShortestPause;
    return planned;
  }
  planned.actions.push_back(
      {.ns = ns, .name = std::string(kStatusName), .text = std::move(text), .at = input.now.wall});
  return planned;
}

void Desk::note_sent(const WriteStatus& written, const Now& now) {
  sent_ = written.text;
  sent_at_ = now.mono;
  paid_until_ = std::max(paid_until_.value_or(now.mono), now.mono) + kRefill;
}

void Desk::note_done(const WriteStatus& written, const Status& answer, const Now& now) {
  if (written.text != sent_) return;  // of an earlier term
  if (!answer) {
    // It may stand there or not: whatever comes next is written.
    accepted_.reset();
    looked_at_.reset();
    return;
  }
  accepted_ = written.text;
  accepted_at_ = now.mono;
}

}  // namespace dhc::status
