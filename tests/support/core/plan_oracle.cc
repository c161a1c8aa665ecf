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

}  // namespace

Turn turn_checked(Controller& controller, std::span<Message> messages, const Now& now) {
  if (controller.take(messages, now)) return controller.plan(now);
  const auto before = outline(controller.verdicts());
  auto turn = controller.plan(now);
  const auto after = outline(controller.verdicts());
  if (before != after) {
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one says otherwise\nbefore: {}\nafter:  {}",
                           fmt::join(before, "\n        "), fmt::join(after, "\n        ")));
  }
  for (const auto& action : turn.actions) {
    // One that is an hour old is made again, with the next plan.
    if (std::holds_alternative<notice::EmitEvent>(action)) continue;
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one does more: {}", facts_of(action).name));
  }
  return turn;
}

}  // namespace dhc::test
