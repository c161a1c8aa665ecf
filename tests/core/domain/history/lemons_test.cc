#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "bench/lemons/replay.h"
#include "bench/lemons/tables.h"
#include "domain/tuning/published_traces.h"

using namespace dhc;
using namespace dhc::lemons;
using tuning::read_infinitehbd;
using tuning::read_titan;

namespace {

using std::chrono::hours;
using std::chrono::minutes;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

FaultTrace servers() {
  auto trace = read_infinitehbd(text_of("bench/traces/infinitehbd/fault_trace.json"));
  REQUIRE(trace);
  return *std::move(trace);
}

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

/// One device in service for 100 days, with faults that begin then and last for a minute.
FaultTrace one_device(std::initializer_list<Millis> beginnings) {
  BrokenDevice device{"a", {{kNoon, kNoon + hours(2400)}}, {}};
  for (const auto begin : beginnings) device.faults.push_back({kNoon + begin, kNoon + begin + minutes(1)});
  return {"cards", 1, 100, {device}};
}

/// The second incident quarantines, unless the first is nearly forgotten.
RecoverRules strict() { return rules_of({hours(720), 1.5}); }

WallTime at(const std::string& time) { return parse_rfc3339(time).value(); }

const std::string kHeader = "SN,location,insert,remove,duration,out,event\n";

std::string told(const std::string& who, const Outcome& held, const Outcome& evidence, double all_days) {
  return fmt::format("| {} | {} | {} | {} | {:.3f} % | {} | {} | {} | {:.3f} % |", who, held.quarantined,
                     held.prevented, held.in_vain, 100 * held.lost_days / all_days, evidence.quarantined,
                     evidence.prevented, evidence.in_vain, 100 * evidence.lost_days / all_days);
}

}  // namespace

TEST_CASE("the defaults of the penalty are the best for a year of 400 servers at half a percent of their time") {
  const RecoverRules defaults;
  const auto best = best_within(servers(), 0.005);
  REQUIRE(best);
  CHECK(best->half_life == defaults.half_life);
  CHECK(best->quarantine_above == defaults.quarantine_above);
}

TEST_CASE("the page about the penalty's defaults shows what the command prints for the trace in the tree") {
  const auto page = text_of("docs/decisions/2026-11-23-three-incidents-make-a-lemon.md");
  CHECK_MESSAGE(page.contains(tables_of(servers())), tables_of(servers()));
}

TEST_CASE("the page about recovery tells what the defaults would have done to the trace in the tree") {
  const auto trace = servers();
  const auto page = text_of("docs/recovery.md");
  for (const Choice& choice :
       {Choice{RecoverRules{}.half_life, RecoverRules{}.quarantine_above}, Choice{hours(168), 5}}) {
    const auto row = told(fmt::format("400 servers | {}, {}", choice.half_life / hours(1), choice.quarantine_above),
                          replay(trace, rules_of(choice), Ending::Hold),
                          replay(trace, rules_of(choice), Ending::Evidence), trace.device_days);
    CHECK_MESSAGE(page.contains(row), row);
  }
}

TEST_CASE("a fault counts as an incident from the moment at which the one before is over, and not before") {
  const auto incidents = [](Millis second, Ending ending) {
    return replay(one_device({Millis(0), second}), strict(), ending).incidents;
  };
  CHECK(incidents(hours(24) + minutes(1) - Millis(1), Ending::Hold) == 1);
  CHECK(incidents(hours(24) + minutes(1), Ending::Hold) == 2);
  CHECK(incidents(minutes(11) - Millis(1), Ending::Evidence) == 1);
  CHECK(incidents(minutes(11), Ending::Evidence) == 2);
}

TEST_CASE("a fault within an incident extends it") {
  const auto outcome =
      replay(one_device({Millis(0), minutes(10), minutes(20), minutes(30), minutes(42)}), strict(), Ending::Evidence);
  CHECK(outcome.incidents == 2);
  CHECK(outcome.quarantined == 1);
}

TEST_CASE("the incidents after a quarantine are prevented, and the time in service after it is lost") {
  const auto outcome = replay(one_device({Millis(0), hours(240), hours(480), hours(1200)}), strict(), Ending::Hold);
  CHECK(outcome.incidents == 4);
  CHECK(outcome.quarantined == 1);
  CHECK(outcome.prevented == 2);
  CHECK(outcome.in_vain == 0);
  CHECK(outcome.lost_days == doctest::Approx(90));
}

TEST_CASE("a quarantine after which the trace has no incident is in vain") {
  const auto outcome = replay(one_device({Millis(0), hours(240)}), strict(), Ending::Hold);
  CHECK(outcome.quarantined == 1);
  CHECK(outcome.prevented == 0);
  CHECK(outcome.in_vain == 1);
}

TEST_CASE("a penalty that is forgotten takes the longer hold with it") {
  const auto rules = rules_of({hours(24), 5});
  const auto incidents = [&](Millis gap) {
    return replay(one_device({Millis(0), gap, gap + hours(24) + minutes(1)}), rules, Ending::Hold).incidents;
  };
  CHECK(incidents(hours(24) * 3) == 2);
  CHECK(incidents(hours(24) * 4) == 3);
}

TEST_CASE("a choice that loses more than the bound is none, whichever way incidents end") {
  const auto trace = one_device({Millis(0), hours(25), hours(50), hours(75), hours(2399)});
  const auto best = best_within(trace, 0.99);
  REQUIRE(best);
  CHECK(best->quarantine_above < 5);
  CHECK(!best_within(trace, 0));
}

TEST_CASE("a card of Titan breaks when its row with an event ends, and one without insertion is that alone") {
  const auto trace = read_titan(kHeader +
                                "2,c0,,2016-04-26 18:10:32,,,DBE\n"
                                "2,c0,2016-04-20 18:00:00,2016-04-26 18:00:00,518400,TRUE,OTB\r\n"
                                "1,c1,2016-04-20 18:00:00,2016-04-21 18:00:00,86400,FALSE,\n");
  REQUIRE(trace);
  CHECK(trace->devices == 2);
  CHECK(trace->device_days == doctest::Approx(7));
  REQUIRE(trace->broken.size() == 1);
  const auto& card = trace->broken[0];
  CHECK(card.name == "2");
  REQUIRE(card.faults.size() == 2);
  CHECK(card.faults[0].from == at("2016-04-26T18:00:00Z"));
  CHECK(card.faults[1].from == at("2016-04-26T18:10:32Z"));
  CHECK(card.in_service.size() == 1);
}

TEST_CASE("lives of a card of Titan that overlap are one") {
  const auto trace = read_titan(kHeader +
                                "1,c0,2016-04-22 00:00:00,2016-04-24 00:00:00,,FALSE,\n"
                                "1,c1,2016-04-20 00:00:00,2016-04-23 00:00:00,,FALSE,\n"
                                "1,c1,2016-04-20 12:00:00,2016-04-21 00:00:00,,FALSE,\n"
                                "1,c1,2016-04-25 00:00:00,2016-04-26 00:00:00,,FALSE,DBE\n");
  REQUIRE(trace);
  CHECK(trace->device_days == doctest::Approx(5));
  CHECK(trace->broken[0].in_service.size() == 2);
}

TEST_CASE("a trace that is not what it should be is refused with its line or fault") {
  CHECK(read_titan(kHeader + "1,c0,,2016-04-26 18:10:32,,DBE\n").error() == "line 2 has not seven fields");
  CHECK(read_titan(kHeader + "1,c0,,2016-04-26 18:10:32,,,DBE,x\n").error() == "line 2 has not seven fields");
  CHECK(read_titan(kHeader + "1,c0,,yesterday,,,DBE\n").error() == "line 2: no time");
  CHECK(read_titan(kHeader + "1,c0,soon,2016-04-26 18:10:32,,,DBE\n").error() == "line 2: no time");
  CHECK(read_infinitehbd("{").error() == "no JSON list of events");
  CHECK(read_infinitehbd("[]").error() == "no JSON list of events");
  CHECK(!read_infinitehbd(R"([{"node_id": 7}])"));
  CHECK(read_infinitehbd(R"([{"node_id": "a", "event_time": 2.5, "event_type": "fault_end",
                              "fault_type": {"Class": "GPU"}}])")
            .error() == "server a: a fault ends on day 2.5 that has not begun");
}

TEST_CASE("faults of other parts of a server are left out") {
  const auto trace = read_infinitehbd(R"([
    {"node_id": "a", "event_time": 1, "event_type": "fault_start", "fault_type": {"Class": "Fan"}},
    {"node_id": "a", "event_time": 2, "event_type": "fault_start", "fault_type": {"Class": "GPU"}},
    {"node_id": "a", "event_time": 3, "event_type": "fault_end", "fault_type": {"Class": "GPU"}},
    {"node_id": "a", "event_time": 10, "event_type": "fault_end", "fault_type": {"Class": "Fan"}}])");
  REQUIRE(trace);
  CHECK(trace->device_days == doctest::Approx(4000));
  REQUIRE(trace->broken.size() == 1);
  REQUIRE(trace->broken[0].faults.size() == 1);
  CHECK(trace->broken[0].faults[0].to - trace->broken[0].faults[0].from == hours(24));
}
