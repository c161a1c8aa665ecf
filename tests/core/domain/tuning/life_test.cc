#include "domain/tuning/life.h"

#include <chrono>
#include <initializer_list>

#include <doctest/doctest.h>

#include "domain/tuning/outcome.h"

using namespace dhc;
using namespace dhc::tuning;

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

/// One device of ten, in service for 100 days.
FaultTrace trace_with(std::vector<Fault> faults) {
  FaultTrace trace{.unit = "cards", .devices = 10, .device_days = 1000};
  trace.from = kNoon;
  trace.to = kNoon + hours(2400);
  trace.broken = {{.name = "a", .in_service = {{trace.from, trace.to}}, .faults = std::move(faults)}};
  return trace;
}

Fault fault(Millis from, Millis length) { return {kNoon + from, kNoon + from + length}; }

/// An incident opens after a minute and holds for four hours, and there is no quarantine.
Choice lenient() {
  Choice choice{.after = minutes(1), .recover = {}};
  choice.recover.hold = hours(4);
  choice.recover.quarantine_above = 1000;
  return choice;
}

Life lived(const FaultTrace& trace, const Choice& choice, Witness witness = Witness::Nobody) {
  return life_of(trace.broken.front(), trace, choice, witness);
}

}  // namespace

TEST_CASE("a fault that outlasts the hold meets a pod each time the hold ends, and each hold is twice as long") {
  const auto trace = trace_with({fault(Millis(0), hours(30))});
  const auto life = lived(trace, lenient());
  REQUIRE(life.hits.size() == 4);
  const auto opened = kNoon + minutes(1);
  CHECK(life.hits[1].at == opened + hours(4));
  CHECK(life.hits[2].at == opened + hours(4 + 8));
  CHECK(life.hits[3].at == opened + hours(4 + 8 + 16));
  CHECK(life.held.back() == Span{opened + hours(28), opened + hours(28 + 32)});
  const auto outcome = outcome_of(trace, lenient(), Witness::Nobody);
  CHECK(outcome.first == 1);
  CHECK(outcome.repeats == 3);
  CHECK(outcome.same_fault == 3);
  CHECK(outcome.incidents == 4);
  CHECK(outcome.held_well == hours(30) + minutes(1));
  CHECK(outcome.waited == minutes(1));
}

TEST_CASE("on probation one report is enough, and a day later the policy's time counts again") {
  const auto waited = [](Millis second) {
    return lived(trace_with({fault(Millis(0), minutes(5)), fault(second, minutes(5))}), lenient()).hits.at(1).waited;
  };
  // It is given back after four hours and a minute.
  CHECK(waited(hours(28)) == Millis(0));
  CHECK(waited(hours(28) + minutes(1)) == minutes(1));
}

TEST_CASE("a fault that is over before the policy's time takes no pod away, and one that just is not does") {
  const auto at = [](Millis length) { return trace_with({fault(Millis(0), length)}); };
  const auto passed = outcome_of(at(minutes(1)), lenient(), Witness::Nobody);
  CHECK(passed.passing == 1);
  CHECK(passed.incidents == 0);
  CHECK(passed.waited == minutes(1));
  CHECK(passed.held_well == Millis(0));
  const auto opened = outcome_of(at(minutes(1) + Millis(1)), lenient(), Witness::Nobody);
  CHECK(opened.passing == 0);
  CHECK(opened.incidents == 1);
  CHECK(opened.held_well == hours(4) - Millis(1));
}

TEST_CASE("a fault that comes while the device is held meets nobody") {
  const auto trace = trace_with({fault(Millis(0), minutes(5)), fault(hours(1), minutes(5))});
  CHECK(lived(trace, lenient()).hits.size() == 1);
  CHECK(outcome_of(trace, lenient(), Witness::Nobody).held_well == hours(4) - minutes(4) - minutes(5));
}

TEST_CASE("a lemon is held to the end of the trace, and no fault meets a pod there") {
  auto choice = lenient();
  choice.recover.quarantine_above = 1.5;
  const auto trace =
      trace_with({fault(Millis(0), minutes(5)), fault(hours(48), minutes(5)), fault(hours(96), minutes(5))});
  const auto life = lived(trace, choice);
  CHECK(life.hits.size() == 2);
  CHECK(life.quarantined);
  CHECK(life.held.back().to == trace.to);
  CHECK(outcome_of(trace, choice, Witness::Nobody).quarantined == 1);
}

TEST_CASE("a device whose penalty is forgotten is held as for the first time") {
  auto choice = lenient();
  choice.recover.half_life = hours(24);
  const auto second_hold = [&](Millis gap) {
    const auto held = lived(trace_with({fault(Millis(0), minutes(5)), fault(gap, minutes(5))}), choice).held.at(1);
    return std::chrono::duration_cast<Millis>(held.to - held.from);
  };
  CHECK(second_hold(hours(24) * 3) == hours(8));
  CHECK(second_hold(hours(24) * 4) == hours(4));
}

TEST_CASE("where the driver speaks, an incident ends healthyFor after the repair, whatever the hold") {
  const auto trace = trace_with({fault(Millis(0), hours(30))});
  const auto outcome = outcome_of(trace, lenient(), Witness::Driver);
  CHECK(outcome.repeats == 0);
  CHECK(outcome.held_well == minutes(10));
  // It is no probation: the next fault opens after the policy's time.
  const auto twice = trace_with({fault(Millis(0), hours(1)), fault(hours(2), hours(1))});
  CHECK(lived(twice, lenient(), Witness::Driver).hits.at(1).waited == minutes(1));
}

TEST_CASE("a fault before the evidence of health is believed belongs to the same incident") {
  const auto hits = [](Millis gap) {
    return lived(trace_with({fault(Millis(0), hours(1)), fault(hours(1) + gap, hours(1))}), lenient(), Witness::Driver)
        .hits.size();
  };
  CHECK(hits(minutes(10) - Millis(1)) == 1);
  CHECK(hits(minutes(10)) == 2);
}

TEST_CASE("faults that overlap or touch are one, and their time counts once") {
  const auto trace =
      trace_with({fault(Millis(0), hours(1)), fault(minutes(30), hours(1)), fault(minutes(90), minutes(30))});
  const auto outcome = outcome_of(trace, lenient(), Witness::Nobody);
  CHECK(outcome.incidents == 1);
  CHECK(outcome.held_well == hours(4) + minutes(1) - hours(2));
}

TEST_CASE(
    "faults that touch are one fault for the policy's time as well, and known to be bad as long as one of them is") {
  const auto twice = trace_with({fault(Millis(0), Seconds(40)), fault(Seconds(40), Seconds(40))});
  CHECK(outcome_of(twice, lenient(), Witness::Nobody).incidents == 1);
  auto first = fault(Millis(0), hours(10));
  first.told_to = kNoon + hours(1);
  const auto known = trace_with({first, fault(hours(1), hours(29))});
  CHECK(outcome_of(known, lenient(), Witness::Nobody).unsure == 0);
}

TEST_CASE("a device that is given back at the moment of its repair meets nobody") {
  const auto hits = [](Millis length) { return lived(trace_with({fault(Millis(0), length)}), lenient()).hits.size(); };
  CHECK(hits(hours(4) + minutes(1)) == 1);
  CHECK(hits(hours(4) + minutes(1) + Millis(1)) == 2);
}

TEST_CASE("what is not in service is not held") {
  auto trace = trace_with({fault(hours(1), minutes(5))});
  trace.broken.front().in_service = {{kNoon, kNoon + hours(2)}, {kNoon + hours(4), trace.to}};
  // Held from 1:01 to 5:01, bad until 1:05, away from 2:00 to 4:00.
  CHECK(outcome_of(trace, lenient(), Witness::Nobody).held_well == minutes(55) + hours(1) + minutes(1));
}

TEST_CASE("a pod that would meet a fault of which nobody knows whether it is over is counted apart") {
  auto unended = fault(Millis(0), hours(30));
  unended.told_to = kNoon + hours(5);
  const auto outcome = outcome_of(trace_with({unended}), lenient(), Witness::Nobody);
  CHECK(outcome.repeats == 1);
  CHECK(outcome.unsure == 2);
  CHECK(outcome.incidents == 4);
}

TEST_CASE("a fault without a length is met at its moment, whatever the policy's time") {
  auto trace = trace_with({fault(Millis(0), Millis(0)), fault(hours(1), Millis(0)), fault(hours(4), Millis(0))});
  trace.has_lengths = false;
  const auto life = lived(trace, lenient());
  REQUIRE(life.hits.size() == 2);
  CHECK(life.hits[1].at == kNoon + hours(4));
  CHECK(life.held.front() == Span{kNoon, kNoon + hours(4)});
}

TEST_CASE("what a hold ends after the trace is held to its end") {
  auto trace = trace_with({fault(hours(2399), minutes(5))});
  CHECK(lived(trace, lenient()).held.back().to == trace.to);
}

TEST_CASE("of a trace of less than a month nothing follows for a year") {
  auto trace = trace_with({fault(Millis(0), hours(30))});
  const auto outcome = outcome_of(trace, lenient(), Witness::Nobody);
  CHECK(repeats_a_year(trace, outcome) == doctest::Approx(3 * 3.65));
  trace.to = trace.from + hours(24 * 29);
  CHECK(repeats_a_year(trace, outcome) == 0);
}

TEST_CASE("a policy that keeps its taints after the hold gives nothing back by itself") {
  auto choice = lenient();
  choice.recover.probation = false;
  const auto trace = trace_with({fault(Millis(0), hours(1)), fault(hours(48), hours(1))});
  const auto life = lived(trace, choice);
  CHECK(life.hits.size() == 1);
  CHECK(life.held.back().to == trace.to);
  CHECK_FALSE(life.quarantined);
}
