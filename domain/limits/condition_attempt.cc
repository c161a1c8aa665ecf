#include "domain/limits/condition_attempt.h"

#include <utility>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

bool shows(const k8s::Pod& pod, const PodWords& words) {
  const auto* seen = our_condition(pod);
  if (seen == nullptr
          ? words.condition.has_value()
          : !words.condition || (seen->status == "True") != *words.condition || seen->message != words.message) {
    return false;
  }
  return words.notice.empty() || k8s::find(pod.meta.annotations, kNoticeAnnotation) == words.notice;
}

}  // namespace

bool is_taken_away(const ConditionAttempt& attempt, const k8s::Pod& pod) {
  return is_in_vain(attempt) && !shows(pod, attempt.said);
}

void note_sent(ConditionAttempt& attempt, const k8s::Pod& pod, PodWords said, std::optional<MonoTime> heard_at,
               const Now& now) {
  if (attempt.state == Attempt::State::Accepted) note_stays(attempt, shows(pod, attempt.said), heard_at);
  attempt.said = std::move(said);
  note_sent(static_cast<Attempt&>(attempt), pod.meta.resource_version, now);
}

bool is_rare(const ConditionAttempt& attempt, const k8s::Pod& pod, const PodWords& wanted) {
  return attempt.state == Attempt::State::Accepted && is_taken_away(attempt, pod) &&
         wanted.condition == attempt.said.condition && wanted.notice.empty() == attempt.said.notice.empty();
}

}  // namespace dhc
