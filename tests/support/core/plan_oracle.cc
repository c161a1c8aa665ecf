#include "tests/support/core/plan_oracle.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/describe.h"
#include "tests/support/core/coverage.h"

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

std::vector<std::string> full_words(const std::vector<Verdict>& verdicts) {
  auto lines = outline(verdicts);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const auto& verdict = verdicts[i];
    lines[i] += fmt::format(": {} [{}; since {}; next {}]", verdict.message, verdict.mode,
                            verdict.since.time_since_epoch().count(),
                            verdict.next_at ? verdict.next_at->time_since_epoch().count() : 0);
  }
  return lines;
}

std::vector<std::string> outline(const std::vector<Action>& actions) {
  std::vector<std::string> lines;
  for (const auto& action : actions) {
    lines.push_back(
        std::visit([](const auto& one) { return fmt::format("{}: {}", one.facts().name, one.words()); }, action));
  }
  return lines;
}

std::string words(const LossFigures& losses) {
  std::string text;
  for (std::size_t i = 0; i < kLossCauses.size(); ++i) {
    text += fmt::format("{} {} ms of {} devices, ", to_string(kLossCauses.at(i)), losses.lost.at(i).count(),
                        losses.lost_now.at(i));
  }
  text += fmt::format("measured {}, would evict", fmt::join(losses.measured, " "));
  for (const auto& [policy, count] : losses.would_evict) text += fmt::format(" {} {}", policy, count);
  for (const auto& [deed, count] : losses.would_do)
    text += fmt::format(" {} {} {}", deed.second, static_cast<int>(deed.first), count);
  for (const auto& [end, count] : losses.ends)
    text += fmt::format(" {} {} {}", end.first, to_string(end.second), count);
  return text;
}

/// What readers of the status see of them, which is written again for each change of it.
std::vector<std::string> standing_words(const std::vector<Verdict>& verdicts) {
  auto lines = full_words(verdicts);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    // Its penalty sinks, by a hundredth in hours.
    if (verdicts[i].reason == Reason::Quarantined) lines[i].clear();
  }
  return lines;
}

template <class T>
std::vector<std::string> without(std::vector<std::string> lines, const T& others) {
  std::erase_if(lines, [&](const auto& line) { return std::ranges::find(others, line) != others.end(); });
  return lines;
}

/// Where two turns that write the state write different ones.
std::string state_apart(const Turn& full, const Turn& kept) {
  const auto text_of = [](const Turn& turn) -> std::string_view {
    for (const auto& action : turn.actions) {
      if (const auto* write = std::get_if<incident_state::WriteState>(&action)) return write->text;
    }
    return {};
  };
  const auto one = text_of(full);
  const auto other = text_of(kept);
  const auto [at, _] = std::ranges::mismatch(one, other);
  const auto from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - one.begin() - 100));
  if (one == other) return {};
  return fmt::format("\nstate from nothing: ...{}\nstate kept:         ...{}",
                     one.substr(std::min(from, one.size()), 300), other.substr(std::min(from, other.size()), 300));
}

/// That the live page shows of some nodes what it shows of them among all, and everything else beside them.
void compare_overviews(const Controller& controller, const Now& now) {
  const auto all = controller.overview(now);
  const auto is_node = [](const std::string& key) { return key.starts_with(kNodeEntry); };
  std::vector<std::set<std::string>> wanted = {controller.busy_nodes()};
  for (const auto& [key, text] : all) {
    if (is_node(key) && wanted.size() < 4) wanted.push_back({key.substr(kNodeEntry.size())});
  }
  for (const auto& nodes : wanted) {
    auto expected = all;
    std::erase_if(expected, [&](const auto& entry) {
      return is_node(entry.first) && !nodes.contains(entry.first.substr(kNodeEntry.size()));
    });
    if (controller.overview(now, &nodes) != expected) {
      FAIL_CHECK(fmt::format("the live page shows something else where it is asked for nodes {} alone",
                             fmt::join(nodes, ", ")));
    }
  }
}

/// That what is kept of earlier plans has changed nothing.
void compare(const FullPlan& full, const Turn& turn, const Controller& controller, const Now& now) {
  const auto& verdicts = controller.verdicts();
  if (full.verdicts != verdicts) {
    const auto expected = full_words(full.verdicts);
    const auto kept = full_words(verdicts);
    // Also where they differ by their order, or by how often one is there.
    const auto [one, other] = std::ranges::mismatch(expected, kept);
    FAIL_CHECK(fmt::format(
        "a plan from nothing has other verdicts\nonly from nothing: {}\nonly kept:         {}\nfirst: {}\nfor:   {}",
        fmt::join(without(expected, kept), "\n                   "),
        fmt::join(without(kept, expected), "\n                   "), one == expected.end() ? "none" : *one,
        other == kept.end() ? "none" : *other));
  }
  if (full.turn.actions != turn.actions) {
    FAIL_CHECK(fmt::format("a plan from nothing has other actions\nfrom nothing: {}\nkept:         {}{}",
                           fmt::join(outline(full.turn.actions), "\n              "),
                           fmt::join(outline(turn.actions), "\n              "), state_apart(full.turn, turn)));
  }
  if (full.turn.wake_at != turn.wake_at) {
    FAIL_CHECK(fmt::format("a plan from nothing wakes {}, and what is kept wakes {}", words(full.turn.wake_at, now),
                           words(turn.wake_at, now)));
  }
  if (full.turn.recalls != turn.recalls) {
    FAIL_CHECK(fmt::format("a plan from nothing recalls: {}, and what is kept: {}", full.turn.recalls, turn.recalls));
  }
  if (full.news != controller.news()) {
    FAIL_CHECK(fmt::format("a plan from nothing tells the webhook {} things, and what is kept {}", full.news.size(),
                           controller.news().size()));
  }
  if (full.losses != controller.losses()) {
    FAIL_CHECK(fmt::format("a plan from nothing counts other losses\nfrom nothing: {}\nkept:         {}",
                           words(full.losses), words(controller.losses())));
  }
}

}  // namespace

Turn PlanOracle::turn(Controller& controller, std::span<Message> messages, const Now& now) {
  if (!controller.is_recorded()) tape_ = std::make_unique<Tape>(controller);
  const bool is_news = [&] {
    const Coverage::Counting counting;
    return controller.take(messages, now);
  }();
  if (is_news) return plan(controller, now);
  if (to_skip_ > 0) {
    --to_skip_;
    return {.actions = {}, .wake_at = wake_at_, .recalls = false};
  }
  const auto said = outline(controller.verdicts());
  const auto said_in_full = standing_words(controller.verdicts());
  const auto wake_at = wake_at_;
  auto turn = plan(controller, now);
  const auto says = outline(controller.verdicts());
  if (said != says) {
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one says otherwise\nbefore: {}\nafter:  {}",
                           fmt::join(said, "\n        "), fmt::join(says, "\n        ")));
  }
  if (const auto in_full = standing_words(controller.verdicts()); said == says && said_in_full != in_full) {
    FAIL_CHECK(fmt::format("nothing has happened, and a verdict says it in other words\nbefore: {}\nafter:  {}",
                           fmt::join(without(said_in_full, in_full), "\n        "),
                           fmt::join(without(in_full, said_in_full), "\n        ")));
  }
  for (const auto& action : turn.actions) {
    // One that is an hour old is made again, with the next plan.
    if (std::holds_alternative<notice::EmitEvent>(action)) continue;
    // It looks for news itself, from time to time.
    if (std::holds_alternative<status::WriteStatus>(action)) continue;
    FAIL_CHECK(fmt::format("the last plan was to stand, and a new one does more: {}",
                           fmt::join(outline(std::vector{action}), ", ")));
  }
  if (turn.wake_at && (!wake_at || *wake_at > *turn.wake_at)) {
    FAIL_CHECK(fmt::format("the last plan was to stand and wakes {}, and a new one wakes {}", words(wake_at, now),
                           words(turn.wake_at, now)));
  }
  return turn;
}

bool PlanOracle::is_compared(const Controller& controller) {
  static const bool each = std::getenv("DHC_EVERY_PLAN") != nullptr;
  const auto number = plans_++;
  const auto stats = controller.stats();
  const auto size = stats.pods + stats.devices_healthy + stats.devices_unhealthy + stats.devices_unknown;
  static const bool few = std::getenv("DHC_FEW_PLANS") != nullptr;
  if (each) return true;
  if (few) return number % kOneOfFew == 0;
  return size > kLarge ? number % kOneOfLarge == 0 : number < kFirst || number % kOneOf == 0;
}

Turn PlanOracle::plan(Controller& controller, const Now& now) {
  const auto full = is_compared(controller) ? std::optional(controller.plan_from_nothing(now)) : std::nullopt;
  auto turn = [&] {
    const Coverage::Counting counting;
    return controller.plan(now);
  }();
  if (auto* coverage = Coverage::running()) coverage->look(controller.verdicts(), turn.actions);
  if (full) compare(*full, turn, controller, now);
  // The page is a function of the state, and most of what a test has on it stays on it.
  if (full && compared_++ % kOneOfPages == 0) compare_overviews(controller, now);
  wake_at_ = turn.wake_at;
  to_skip_ = static_cast<unsigned>(lengths_() % (kMostSkipped + 1));
  return turn;
}

}  // namespace dhc::test
