// A fleet's year: every GPU-hour is in one class, and each contender does to a small fleet what it is there for.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "bench/fleet_year/ours.h"
#include "bench/fleet_year/report.h"
#include "bench/fleet_year/rivals.h"

using namespace dhc;
using namespace dhc::year;

namespace {

constexpr Millis kHour = std::chrono::hours(1);

/// One fault, of the first server, from the third hour on.
FaultTrace one_fault(Millis length, bool of_server = false) {
  return {.faults =
              {{.server = "a", .from = 3 * kHour, .to = 3 * kHour + length, .what = "Xid 79", .of_server = of_server}},
          .length = 60 * kHour,
          .servers = 3};
}

/// Three servers of two devices, all of them asked for but one: a service of three pods and two Jobs.
Demand demand() {
  return {.pools = {"shared", "shared", "shared"},
          .services = {{.name = "web", .pool = "shared", .gpus = 1, .replicas = 3}},
          .slots = {{.pool = "shared", .gpus = 1}, {.pool = "shared", .gpus = 1}}};
}

Run small() {
  Run run;
  run.shape.nodes = 3;
  run.shape.devices = 2;
  run.shape.backoff_limits = {0, 0, 0};
  run.spread.nodes = 3;
  run.spread.devices = 2;
  run.spread.length = 60 * kHour;
  return run;
}

Year played(Kind kind, const FaultTrace& trace, std::uint64_t seed = 1) {
  auto run = small();
  run.seed = seed;
  return play(run, trace, demand(), [&](Fleet& fleet) -> std::unique_ptr<Contender> {
    if (kind == Kind::Nobody) return make_nobody(fleet, 20 * kHour);
    if (kind == Kind::Drain) return make_drain(fleet);
    if (kind == Kind::NoExecute) return make_no_execute(fleet);
    return make_ours(fleet.cluster, default_policy());
  });
}

double all_classes(const Year& year) {
  double sum = 0;
  for (std::size_t use = 0; use < kUses; ++use) sum += year.of(static_cast<Use>(use));
  return sum;
}

std::string trace_text() {
  std::ifstream file("bench/traces/infinitehbd/fault_trace.json", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int killed(const Year& year) { return year.counts.killed[0] + year.counts.killed[1]; }
int innocents(const Year& year) { return year.counts.innocents[0] + year.counts.innocents[1]; }

}  // namespace

TEST_CASE("a ledger books each moment of each device once, whatever is said twice") {
  const MonoTime start{kHour};
  Ledger ledger(2, start);
  ledger.set(0, Use::Working, Cause::Device, start);
  ledger.set(0, Use::Working, Cause::Device, start + kHour);
  ledger.set(0, Use::Broken, Cause::Server, start + 3 * kHour);
  ledger.close(start + 4 * kHour);
  ledger.close(start + 4 * kHour);
  CHECK(ledger.of(Use::Working) == 3 * kHour);
  CHECK(ledger.of(Use::Broken, Cause::Server) == kHour);
  CHECK(ledger.of(Use::Broken, Cause::Device) == Millis(0));
  CHECK(ledger.of(Use::Idle) == 4 * kHour);
  CHECK(ledger.sum() == 8 * kHour);
}

TEST_CASE("work done again is taken from the work and changes no sum") {
  const MonoTime start{kHour};
  Ledger ledger(1, start);
  ledger.set(0, Use::Working, Cause::Device, start);
  ledger.close(start + 2 * kHour);
  ledger.redo(kHour, Cause::Server);
  CHECK(ledger.of(Use::Working) == kHour);
  CHECK(ledger.of(Use::Redone, Cause::Server) == kHour);
  CHECK(ledger.sum() == 2 * kHour);
}

TEST_CASE("every GPU-hour of a fleet is in exactly one class, whoever acts and whatever breaks") {
  for (const auto kind : kKinds) {
    for (const bool of_server : {false, true}) {
      CAPTURE(to_string(kind));
      CAPTURE(of_server);
      const auto year = played(kind, one_fault(10 * kHour, of_server));
      CHECK(year.all_hours == doctest::Approx(6 * 60));
      CHECK(all_classes(year) == doctest::Approx(year.all_hours));
      CHECK(year.of(Use::Broken, of_server ? Cause::Server : Cause::Device) == doctest::Approx(of_server ? 20 : 10));
      CHECK(year.of(Use::Working) > 0);
    }
  }
}

TEST_CASE("without a fault no contender kills a pod or costs an hour") {
  for (const auto kind : kKinds) {
    CAPTURE(to_string(kind));
    const auto year = played(kind, {.faults = {}, .length = 60 * kHour, .servers = 3});
    CHECK(killed(year) == 0);
    CHECK(year.counts.jobs_lost == 0);
    CHECK(year.of(Use::Broken) + year.of(Use::Barred) + year.of(Use::Stuck) + year.of(Use::Redone) == 0);
    // Five pods of six devices; a Job that ends is followed by the next.
    CHECK(year.of(Use::Working) > 5 * 60 * 0.97);
  }
}

TEST_CASE(
    "a server that stays bad costs the controller no turns: what its brake and a full cap hold is not tried again") {
  auto run = small();
  run.shape.devices = run.spread.devices = 8;
  run.spread.length = 200 * kHour;
  const Demand asked{.pools = {"shared", "shared", "shared"},
                     .services = {{.name = "web", .pool = "shared", .gpus = 1, .replicas = 16}},
                     .slots = {}};
  const auto turns = [&](Millis length) {
    auto trace = one_fault(length, true);
    trace.length = run.spread.length;
    const auto year = play(run, trace, asked, [&](Fleet& fleet) { return make_ours(fleet.cluster, default_policy()); });
    CHECK(year.counts.killed[1] > 0);
    return year.effort;
  };
  const auto of_day = turns(24 * kHour);
  const auto of_week = turns(180 * kHour);
  CHECK(of_day.turns <= 320);
  CHECK(of_day.asked <= 500);
  // A trial each ten minutes that a cap refuses made them 2750 and 14664.
  CHECK(of_week.turns <= 450);
  CHECK(of_week.asked <= 2500);
}

TEST_CASE("a server that boots anew at its repair is given back to its work, one that shows no boot is held") {
  const auto held_after = [](bool boots) {
    auto run = small();
    run.shape.server_boots = boots;
    const auto year = play(run, one_fault(10 * kHour, true), demand(),
                           [&](Fleet& fleet) { return make_ours(fleet.cluster, default_policy()); });
    CHECK(all_classes(year) == doctest::Approx(year.all_hours));
    return year.of(Use::Barred, Cause::Server);
  };
  CHECK(held_after(false) > 40);
  CHECK(held_after(true) < 2);
}

TEST_CASE("the controller moves the pod of a bad device and no other, and no Job is lost") {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const auto year = played(Kind::Ours, one_fault(10 * kHour), seed);
    moved += killed(year);
    CHECK(killed(year) <= 1);
    CHECK(innocents(year) == 0);
    CHECK(year.counts.wrong == 0);
    CHECK(year.counts.retries == 0);
    CHECK(year.counts.jobs_lost == 0);
    CHECK(year.counts.repeats == 0);
  }
  CHECK(moved > 0);
}

TEST_CASE("draining kills pods on good devices and keeps those devices free") {
  double barred = 0;
  int others = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto drained = played(Kind::Drain, one_fault(10 * kHour), seed);
    barred += drained.of(Use::Barred);
    others += innocents(drained);
    CHECK(played(Kind::Ours, one_fault(10 * kHour), seed).counts.faults == drained.counts.faults);
  }
  CHECK(others > 0);
  // The server's other device, but for the minute before the drain.
  CHECK(barred > 4 * 9.5);
  CHECK(barred < 4 * 10.5);
}

TEST_CASE("a NoExecute rule takes a Job's only retry, and with it the Job") {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto year = played(Kind::NoExecute, one_fault(10 * kHour), seed);
    lost += year.counts.jobs_lost;
    CHECK(year.counts.jobs_lost == year.counts.retries);
    CHECK(innocents(year) == 0);
  }
  CHECK(lost > 0);
}

TEST_CASE("where nobody acts a pod stays on its bad device until people notice") {
  double broken = 0;
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto year = played(Kind::Nobody, one_fault(10 * kHour), seed);
    broken += year.of(Use::Broken);
    held += killed(year);
  }
  CHECK(broken == doctest::Approx(40));
  CHECK(held == 0);  // it was repaired before
  int noticed = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) noticed += killed(played(Kind::Nobody, one_fault(30 * kHour), seed));
  CHECK(noticed > 0);
}

TEST_CASE("the same seed is the same year") {
  const auto once = played(Kind::Ours, one_fault(10 * kHour), 3);
  const auto twice = played(Kind::Ours, one_fault(10 * kHour), 3);
  CHECK(once.hours == twice.hours);
  CHECK(once.moments == twice.moments);
}

TEST_CASE("the servers' trace becomes faults of devices") {
  const auto trace = read_faults(trace_text());
  REQUIRE_MESSAGE(trace, trace.error());
  CHECK(trace->faults.size() == 584);
  CHECK(trace->servers == 400);
  CHECK(std::chrono::floor<std::chrono::days>(trace->length).count() == 348);
  CHECK(std::chrono::round<std::chrono::minutes>(median_length(*trace)).count() == 1223);
  for (const int per_fault : {1, 2, 8}) {
    std::size_t of_server = 0;
    for (const auto& fault : spread(*trace, {.per_fault = per_fault}, 1)) {
      of_server += fault.of_server ? 1 : 0;
      CHECK(fault.devices.size() == static_cast<std::size_t>(fault.of_server ? 8 : per_fault));
      CHECK(fault.to > fault.from);
      CHECK(fault.node < 400);
    }
    CHECK(of_server > 80);
  }
}

TEST_CASE("a trace that ends what has not begun is refused by server and day") {
  CHECK(read_faults("{}").error() == "no JSON list of events");
  const auto ends =
      R"([{"node_id":"n7","event_time":4.5,"event_type":"fault_end","fault_type":{"Level":"","Class":"GPU","Desc":""}}])";
  CHECK(read_faults(ends).error() == "server n7: a fault ends on day 4.5 that has not begun");
}

TEST_CASE("an estimate is the mean with half the width of Student's interval") {
  CHECK(estimate({}).mean == 0);
  CHECK(estimate({5}).mean == 5);
  CHECK(estimate({5}).half_width == 0);
  const auto three = estimate({1, 2, 3});
  CHECK(three.mean == doctest::Approx(2));
  CHECK(three.half_width == doctest::Approx(4.303 / std::sqrt(3.0)).epsilon(0.001));
}
