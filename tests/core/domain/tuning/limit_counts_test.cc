#include "domain/tuning/limit_counts.h"

#include <chrono>

#include <doctest/doctest.h>

#include "domain/tuning/outcome.h"

using namespace dhc;
using namespace dhc::tuning;

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

/// Ten devices, five each on two nodes, of which those break that are named: on `a` or `b`, when and for how long.
struct Break {
  std::string node;
  Millis from;
  Millis length;
};
FaultTrace trace_of(const std::vector<Break>& breaks) {
  FaultTrace trace{.unit = "devices", .devices = 10, .device_days = 1000};
  trace.from = kBegin;
  trace.to = kBegin + hours(2400);
  trace.known = {{{"gpu", ""}, 10}, {{"gpu", "a"}, 5}, {{"gpu", "b"}, 5}};
  for (const auto& [node, from, length] : breaks) {
    trace.broken.push_back({.name = "gpu-" + std::to_string(trace.broken.size()),
                            .in_service = {{trace.from, trace.to}},
                            .faults = {{kBegin + from, kBegin + from + length}},
                            .scope = "gpu",
                            .node = node});
  }
  return trace;
}

BrakeCount braked(const FaultTrace& trace, std::int64_t percent, Reach reach, std::int64_t at_least = 3) {
  Limits limits;
  limits.brake_percent = percent;
  limits.brake_at_least = at_least;
  return brake_count_of(trace, lives_of(trace, {.after = minutes(1), .recover = {}}, Witness::Nobody), limits, reach);
}

CapCount capped(const FaultTrace& trace, const Cap& cap, Reach reach) {
  return cap_count_of(trace, lives_of(trace, {.after = minutes(1), .recover = {}}, Witness::Nobody), cap, reach);
}

const std::vector<Break> kThree = {
    {"a", Millis(0), hours(1)}, {"b", minutes(2), hours(1)}, {"b", minutes(4), hours(1)}};

}  // namespace

TEST_CASE("the brake engages on more than the share within the window, and on no fewer than it asks for") {
  CHECK(braked(trace_of(kThree), 29, Reach::Cluster).engaged == std::vector{kBegin + minutes(4)});
  CHECK(braked(trace_of(kThree), 30, Reach::Cluster).engaged.empty());
  CHECK(braked(trace_of(kThree), 10, Reach::Cluster, 4).engaged.empty());
  CHECK(braked(trace_of(kThree), 30, Reach::Cluster).most == 3);
}

TEST_CASE("what turned bad a whole window ago counts no more") {
  auto slow = kThree;
  slow[2].from = minutes(5);
  CHECK(braked(trace_of(slow), 10, Reach::Cluster).engaged.empty());
  slow[2].from = minutes(5) - Millis(1);
  CHECK(braked(trace_of(slow), 10, Reach::Cluster).engaged.size() == 1);
}

TEST_CASE("the brake of a node counts that node's devices alone") {
  CHECK(braked(trace_of(kThree), 20, Reach::Node, 2).engaged == std::vector{kBegin + minutes(4)});
  CHECK(braked(trace_of(kThree), 20, Reach::Node, 3).engaged.empty());
  auto nowhere = trace_of(kThree);
  for (auto& device : nowhere.broken) device.node.clear();
  CHECK(braked(nowhere, 20, Reach::Node, 2).engaged.empty());
}

TEST_CASE("a brake that is engaged goes on while too many are bad, and engages again after that") {
  auto more = kThree;
  // More of them while it is engaged, and more while these are bad: it has been engaged all the time.
  for (const auto at : {minutes(30), minutes(80), minutes(600)}) {
    for (int i = 0; i < 3; ++i) more.push_back({"a", at, hours(1)});
  }
  CHECK(braked(trace_of(more), 20, Reach::Cluster).engaged == std::vector{kBegin + minutes(4), kBegin + hours(10)});
}

TEST_CASE("a cap refuses what would be one more than it allows, and what it refuses does not count") {
  // Each is held for three days.
  const auto trace = trace_of(kThree);
  const auto full = capped(trace, {.percent = 10, .at_least = 2}, Reach::Cluster);
  CHECK(full.refused == std::vector{kBegin + minutes(5)});
  CHECK(full.most == 2);
  CHECK(capped(trace, {.percent = 30, .at_least = 0}, Reach::Cluster).refused.empty());
  CHECK(capped(trace, {.percent = 0, .at_least = 1}, Reach::Cluster).refused.size() == 2);
}

TEST_CASE("a device that is given back makes room") {
  const auto trace = trace_of({{"a", Millis(0), hours(1)}, {"b", hours(72), hours(1)}});
  const Cap one{.percent = 0, .at_least = 1};
  // The first is given back a minute before the second's incident opens.
  CHECK(capped(trace, one, Reach::Cluster).refused.empty());
  const auto early = trace_of({{"a", Millis(0), hours(1)}, {"b", hours(72) - Millis(1), hours(1)}});
  CHECK(capped(early, one, Reach::Cluster).refused.size() == 1);
}

TEST_CASE("the cap of a node counts that node's devices alone") {
  CHECK(capped(trace_of(kThree), {.percent = 0, .at_least = 1}, Reach::Node).refused ==
        std::vector{kBegin + minutes(5)});
}

TEST_CASE("the cap of a day counts the evictions of the last 24 hours") {
  const auto refused = [](Millis second) {
    const auto trace = trace_of({{"a", Millis(0), hours(1)}, {"b", second, hours(1)}});
    return day_count_of(trace, lives_of(trace, {.after = minutes(1), .recover = {}}, Witness::Nobody),
                        {.percent = 0, .at_least = 1})
        .refused.size();
  };
  CHECK(refused(hours(24) - Millis(1)) == 1);
  CHECK(refused(hours(24)) == 0);
}

TEST_CASE("the devices of one card count once, against cards") {
  // One card of node a with four replicas, and one of node b.
  auto trace = trace_of({{"a", Millis(0), hours(1)},
                         {"a", Millis(0), hours(1)},
                         {"a", Seconds(1), hours(1)},
                         {"a", Seconds(2), hours(2)},
                         {"b", minutes(2), hours(1)}});
  const auto as_cards = [&] {
    auto cards = trace;
    for (std::size_t i = 0; i < 4; ++i) cards.broken[i].card = "card-0";
    return cards;
  }();
  CHECK(braked(trace, 20, Reach::Cluster).most == 5);
  CHECK(braked(as_cards, 20, Reach::Cluster).most == 2);
  CHECK(braked(as_cards, 20, Reach::Cluster).engaged.empty());
  CHECK(braked(as_cards, 10, Reach::Cluster, 2).engaged == std::vector{kBegin + minutes(2)});
  CHECK(braked(as_cards, 20, Reach::Node, 2).engaged.empty());
  const auto two = capped(as_cards, {.percent = 0, .at_least = 2}, Reach::Cluster);
  CHECK(two.refused.empty());
  CHECK(two.most == 2);
  CHECK(capped(as_cards, {.percent = 0, .at_least = 1}, Reach::Node).refused.empty());
  CHECK(capped(as_cards, {.percent = 0, .at_least = 1}, Reach::Cluster).refused == std::vector{kBegin + minutes(3)});
  // Each replica's pod is evicted.
  const auto told = lives_of(as_cards, {.after = minutes(1), .recover = {}}, Witness::Nobody);
  CHECK(day_count_of(as_cards, told, {.percent = 0, .at_least = 3}).refused.size() == 2);
  // The card is released by its last device.
  const auto brake_again = [&](Millis after) {
    auto later = as_cards;
    for (int i = 0; i < 2; ++i) {
      later.broken.push_back(later.broken.back());
      later.broken.back().name = "late-" + std::to_string(i);
      later.broken.back().faults = {{kBegin + after, kBegin + after + hours(1)}};
    }
    return braked(later, 10, Reach::Cluster, 2).engaged.size();
  };
  CHECK(brake_again(hours(3)) == 2);
}

TEST_CASE("a card is held well once, however many of its devices are held") {
  auto trace = trace_of({{"a", Millis(0), hours(1)}, {"a", Millis(0), hours(1)}, {"a", hours(1), hours(1)}});
  const Choice choice{.after = minutes(1), .recover = {}};
  trace.broken.resize(1);
  const auto alone = outcome_of(trace, choice, Witness::Nobody);
  trace.broken.push_back(trace.broken.front());
  trace.broken.back().name = "gpu-1";
  CHECK(outcome_of(trace, choice, Witness::Nobody).held_well == 2 * alone.held_well);
  for (auto& device : trace.broken) device.card = "card-0";
  const auto both = outcome_of(trace, choice, Witness::Nobody);
  CHECK(both.held_well == alone.held_well);
  CHECK(both.incidents == 2);
  // Another device of it that breaks when the first is repaired, and is held for an hour longer: what the card is held
  // well for begins an hour later, and ends so.
  trace.broken.back().faults = {{kBegin + hours(1), kBegin + hours(2)}};
  CHECK(outcome_of(trace, choice, Witness::Nobody).held_well == alone.held_well);
}
