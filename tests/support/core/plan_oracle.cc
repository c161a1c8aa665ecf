#include "tests/support/core/plan_oracle.h"

#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/describe.h"

namespace dhc::test {

namespace {

/// Without its message, where figures follow the time and what was just sent.
std::vector<std::string> outline(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> lines;
  for (const auto& verdict : verdicts) {
    lines.push_back(fmt::format("{} {}/{} {} {} {}", verdict.subject.kind, verdict.subject.ns, verdict.subject.name,
                                verdict.device, verdict.policy, to_string(verdict.reason)));
  }
  return lines;
}

std::string words(const std::optional<MonoTime>& at, const Now& now) {
  return at ? fmt::format("in {} ms", (*at - now.mono).count()) : std::string("never");
}

}  // namespace

Turn PlanOracle::turn(Controller& controller, std::span<Message> messages, const Now& now) {
  if (controller.take(messages, now)) return plan(controller, now);
  if (to_skip_ > 0) {
    --to_skip_;
    return {.actions = {}, .wake_at = wake_at_, .recalls = false};
  }
  const auto said = outline(controller.verdicts());
  const auto wake_at = wake_at_;
  auto turn = plan(controller, now);
  const auto says = outline(controller.verdicts());
  if (said != says) {
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one says otherwise\nbefore: {}\nafter:  {}",
                           fmt::join(said, "\n        "), fmt::join(says, "\n        ")));
  }
  for (const auto& action : turn.actions) {
    // One that is an hour old is made again, with the next plan.
    if (std::holds_alternative<notice::EmitEvent>(action)) continue;
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one does more: {}", facts_of(action).name));
  }
  if (turn.wake_at && (!wake_at || *wake_at > *turn.wake_at)) {
    FAIL_CHECK(fmt::format("the last plan was to stand and wakes {}, and a new one wakes {}", words(wake_at, now),
                           words(turn.wake_at, now)));
  }
  return turn;
}

Turn PlanOracle::plan(Controller& controller, const Now& now) {
  auto turn = controller.plan(now);
  wake_at_ = turn.wake_at;
  to_skip_ = static_cast<unsigned>(lengths_() % (kMostSkipped + 1));
  return turn;
}

}  // namespace dhc::test
