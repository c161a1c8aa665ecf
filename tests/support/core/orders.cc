#include "tests/support/core/orders.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/contract/job_record.h"
#include "domain/contract/names.h"
#include "domain/contract/reasons.h"

namespace dhc::test {

using namespace dhc::sim;

namespace {

using Words = std::vector<std::string>;

/// `web-*` for `web-x7k2p`: the five characters that a server makes up say nothing.
std::string lasting(const std::string& name) {
  constexpr std::size_t kMadeUp = 5;
  const auto dash = name.rfind('-');
  return dash != std::string::npos && name.size() - dash - 1 == kMadeUp ? name.substr(0, dash + 1) + "*" : name;
}

void add_rules(const Scenario& world, Words& end) {
  for (const auto& [name, rule] : world.cluster.store().all(Res::TaintRules)) {
    end.push_back(fmt::format("rule {}/{}/{} {}", text(*rule, {"spec", "deviceSelector", "driver"}),
                              text(*rule, {"spec", "deviceSelector", "pool"}),
                              text(*rule, {"spec", "deviceSelector", "device"}),
                              text(*rule, {"spec", "taint", "effect"})));
  }
}

void add_node_taints(const Scenario& world, Words& end) {
  for (const auto& [name, node] : world.cluster.store().all(Res::Nodes)) {
    for (const auto& taint : list(*node, {"spec", "taints"})) {
      if (text(taint, {"key"}) == kTaintKey) end.push_back(fmt::format("taint {}", name.name));
    }
  }
}

void add_jobs(const Scenario& world, Words& end) {
  for (const auto& [name, job] : world.cluster.store().all(Res::Jobs)) {
    const auto credits = parse_retry_credits(text(*job, {"metadata", "annotations", kRetryCreditsAnnotation}));
    end.push_back(fmt::format("job {} limit {} failed {} credits {}", name.name, number(*job, {"spec", "backoffLimit"}),
                              number(*job, {"status", "failed"}), credits ? credits->credits.size() : 0));
  }
}

void add_conditions(const Scenario& world, Words& end) {
  for (const auto& [name, pod] : world.cluster.store().all(Res::Pods)) {
    for (const auto& condition : list(*pod, {"status", "conditions"})) {
      if (text(condition, {"type"}) != kConditionType) continue;
      end.push_back(fmt::format("condition {} {}", lasting(name.name), text(condition, {"status"})));
    }
  }
}

void add_verdicts(const Scenario& world, Words& end) {
  for (const auto& verdict : world.verdicts()) {
    end.push_back(
        fmt::format("{} {} {}", verdict.subject.kind, lasting(verdict.subject.name), to_string(verdict.reason)));
  }
}

struct Orders {
  std::vector<std::vector<std::size_t>> before;  // of each event, those that come first
  std::vector<std::vector<std::size_t>> all;

  void add(std::vector<std::size_t>& so_far) {
    if (so_far.size() == before.size()) all.push_back(so_far);
    const auto is_told = [&](std::size_t event) { return std::ranges::find(so_far, event) != so_far.end(); };
    for (std::size_t next = 0; next < before.size(); ++next) {
      if (is_told(next) || !std::ranges::all_of(before[next], is_told)) continue;
      so_far.push_back(next);
      add(so_far);
      so_far.pop_back();
    }
  }
};

}  // namespace

std::vector<std::vector<std::size_t>> allowed_orders(const std::vector<EventName>& events) {
  Orders orders;
  for (const auto& event : events) {
    auto& before = orders.before.emplace_back();
    for (const auto& name : event.after) {
      const auto found = std::ranges::find(events, name, &EventName::name);
      REQUIRE_MESSAGE(found != events.end(), event.name, " comes after ", name, ", which is no event");
      before.push_back(static_cast<std::size_t>(found - events.begin()));
    }
  }
  std::vector<std::size_t> none;
  orders.add(none);
  REQUIRE_MESSAGE(!orders.all.empty(), "no order is allowed");
  return std::move(orders.all);
}

std::vector<std::string> end_of(const Scenario& world) {
  Words end;
  for (const auto& gone : world.evictions()) end.push_back("evicted " + lasting(gone));
  add_rules(world, end);
  add_node_taints(world, end);
  add_jobs(world, end);
  add_conditions(world, end);
  add_verdicts(world, end);
  std::ranges::sort(end);
  return end;
}

std::string way_of(const std::vector<EventName>& events, const std::vector<std::size_t>& order,
                   std::size_t restarts_after) {
  Words words;
  for (const auto event : order) {
    words.push_back(events.at(event).name);
    if (words.size() == restarts_after) words.emplace_back("restart");
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void expect_end(const std::string& way, const std::vector<std::string>& end, const std::vector<std::string>& expected) {
  CHECK_MESSAGE(end == expected, way, " ends with:\n  ", fmt::format("{}", fmt::join(end, "\n  ")),
                "\nand not with:\n  ", fmt::format("{}", fmt::join(expected, "\n  ")));
}

}  // namespace dhc::test
