#include "reconcilers/notice/plan.h"

#include <utility>
#include <vector>

#include "reconcilers/notice/conditions.h"
#include "reconcilers/notice/events.h"
#include "reconcilers/notice/facts.h"
#include "reconcilers/notice/next_steps.h"

namespace dhc::notice {

namespace {

Verdict verdict_of(const RejectedConfig& rejected) {
  return {.subject =
              rejected.source.value_or(Subject{.kind = "Configuration", .ns = {}, .name = "configuration", .uid = {}}),
          .device = {},
          .policy = {},
          .reason = Reason::ConfigRejected,
          .message = rejected.why,
          .since = rejected.since.wall,
          .next_at = std::nullopt};
}

}  // namespace

Planned<NoticeAction> plan(const PlanInput& input, std::span<const Verdict> verdicts,
                           const std::optional<RejectedConfig>& rejected) {
  Planned<NoticeAction> planned;
  Wake wake;
  const NextSteps next(verdicts, input);
  auto conditions = plan_conditions(input, next);
  wake.note(conditions.wake_at);
  planned.wakes = std::move(conditions.wakes);
  planned.again = std::move(conditions.again);
  planned.pods_again = std::move(conditions.pods_again);
  auto facts = find_facts(input);
  if (rejected) facts.verdicts.push_back(verdict_of(*rejected));
  wake.note(facts.wake_at);
  std::vector<Verdict> news(verdicts.begin(), verdicts.end());
  news.insert(news.end(), facts.verdicts.begin(), facts.verdicts.end());
  auto events = plan_events(input, news, next, rejected);
  for (auto& action : conditions.actions) planned.actions.emplace_back(std::move(action));
  for (auto& action : events.actions) planned.actions.emplace_back(std::move(action));
  planned.verdicts = std::move(facts.verdicts);
  planned.about = std::move(facts.about);
  planned.wake_at = wake.at();
  return planned;
}

}  // namespace dhc::notice
