#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/tune_text.h"
#include "domain/tuning/published_traces.h"
#include "domain/tuning/sweep.h"

using namespace dhc;
using namespace dhc::tuning;

namespace {

std::string page(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const FaultTrace& year() {
  static const auto trace = read_infinitehbd(page("bench/traces/infinitehbd/fault_trace.json"));
  REQUIRE(trace);
  return *trace;
}

const Sweep& swept() {
  static const auto all = sweep(year(), running_of(nullptr, {}), default_grid());
  return all;
}

/// What stands between the marks of a page that a command writes.
std::string block(const std::string& text) {
  const std::string begin = "<!-- tune -->\n";
  const auto from = text.find(begin);
  REQUIRE(from != std::string::npos);
  const auto to = text.find("<!-- end of tune -->", from);
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

TEST_CASE("the page about tuning shows what the command prints for the trace in the tree") {
  const auto told = cli::tune_text(year(), swept());
  CHECK_MESSAGE(block(page("docs/tuning.md")) == told, "make tune-page writes it: " << told);
}

TEST_CASE("the shipped defaults are on the line for a year of 400 servers whoever speaks, and hold half a percent") {
  for (const auto* line : {&swept().silent, &swept().spoken}) {
    CHECK(line->distance.is_on_line());
    CHECK(share_held(year(), line->running.outcome) < 0.005);
  }
  // What the decision quotes.
  const auto text = cli::tune_text(year(), swept());
  const auto lines = block(page("docs/decisions/2026-11-26-the-defaults-are-on-the-line.md"));
  std::size_t checked = 0;
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = lines.find('\n', at);
    const auto line = lines.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    CHECK_MESSAGE(text.contains(line + "\n"), line);
    ++checked;
  }
  CHECK(checked >= 3);
}

TEST_CASE("the page about recovery tells what the defaults would have done to the trace in the tree") {
  const auto recovery = page("docs/recovery.md");
  Choice earlier{.after = std::chrono::minutes(1), .recover = {}};
  earlier.recover.hold = std::chrono::hours(24);
  earlier.recover.half_life = std::chrono::hours(168);
  earlier.recover.quarantine_above = 5;
  for (const auto& choice : {running_of(nullptr, {}).choice, earlier}) {
    std::string row = fmt::format("| 400 servers | {}, {}, {} |", choice.recover.hold / std::chrono::hours(1),
                                  choice.recover.half_life / std::chrono::hours(1), choice.recover.quarantine_above);
    for (const auto witness : {Witness::Nobody, Witness::Driver}) {
      const auto outcome = outcome_of(year(), choice, witness);
      row +=
          fmt::format(" {} | {:.4f} % | {} |", outcome.repeats, 100 * share_held(year(), outcome), outcome.quarantined);
    }
    CHECK_MESSAGE(recovery.contains(row + "\n"), row);
  }
}

TEST_CASE("the running configuration is in the table, marked, whether it is on the line or off it") {
  CHECK(cli::tune_text(year(), swept()).contains("The running configuration is on the line.\n"));
  auto running = running_of(nullptr, {});
  running.choice.recover.hold = std::chrono::hours(24);
  running.choice.recover.half_life = std::chrono::hours(720);
  const auto off = sweep(year(), running, default_grid());
  CHECK_FALSE(off.silent.distance.is_on_line());
  CHECK(cli::tune_text(year(), off).contains("**running, off the line**"));
}

TEST_CASE("every point of a line beats none of the others, and no choice beats it") {
  for (const auto* line : {&swept().silent, &swept().spoken}) {
    REQUIRE(line->points.size() > 2);
    for (const auto& a : line->points) {
      for (const auto& b : line->points) CHECK_FALSE(beats(held_and_repeats(a.outcome), held_and_repeats(b.outcome)));
    }
  }
}

TEST_CASE("a bound has the choice with the fewest repeat failures of those that hold no more, whoever speaks") {
  std::size_t before = std::size_t(-1);
  for (const auto& [percent, silent, spoken] : swept().budgets) {
    if (!silent) continue;
    CHECK(share_held(year(), silent->outcome) * 100 <= percent);
    CHECK(share_held(year(), spoken->outcome) * 100 <= percent);
    CHECK(silent->outcome == outcome_of(year(), silent->choice, Witness::Nobody));
    CHECK(spoken->outcome == outcome_of(year(), spoken->choice, Witness::Driver));
    CHECK(silent->outcome.repeats <= before);
    before = silent->outcome.repeats;
  }
  CHECK(before != std::size_t(-1));
}

TEST_CASE("a trace that does not say how long faults lasted says nothing of after") {
  const auto trace = read_titan(
      "SN,location,insert,remove,duration,out,event\n"
      "1,c0,2016-04-20 18:00:00,2016-04-26 18:00:00,518400,TRUE,OTB\n"
      "1,c1,2016-04-27 18:00:00,2016-05-26 18:00:00,,TRUE,DBE\n");
  REQUIRE(trace);
  const auto all = sweep(*trace, running_of(nullptr, {}), {});
  CHECK(all.after.empty());
  CHECK(all.silent.running.outcome.repeats == 1);
  CHECK(cli::tune_text(*trace, all).contains("This trace cannot tell: it does not say how long a fault lasted."));
  CHECK(cli::tune_json(*trace, all).contains("\"after\":null"));
}

TEST_CASE("a text that is no trace is refused with what it could be") {
  for (const char* text : {"", "{}", "SN,place\n"}) {
    const auto trace = read_published(text);
    REQUIRE_FALSE(trace);
    CHECK(trace.error().starts_with("no trace that can be read: give InfiniteHBD's fault_trace.json"));
  }
  CHECK(read_published(" \n[]").error() == "no JSON list of events");
  CHECK(read_published("[{\"node_id\": 7}]").error().starts_with("event 1: "));
}

TEST_CASE("an event of a trace whose time cannot be is refused with its number") {
  const auto event = [](std::string_view type, std::string_view time) {
    return fmt::format(
        R"({{"node_id": "a", "event_time": {}, "event_type": "fault_{}", "fault_type": {{"Class": "GPU"}}}})", time,
        type);
  };
  const auto refused = [](const std::string& events) {
    const auto trace = read_infinitehbd("[" + events + "]");
    return trace ? std::string() : trace.error();
  };
  CHECK(refused(event("start", "1") + "," + event("end", "2")).empty());
  CHECK(refused(event("start", "1e300")) == "event 1: event_time is 1e+300, no day from 0 to 36500");
  CHECK(refused(event("start", "1") + "," + event("end", "-1")) == "event 2: event_time is -1, no day from 0 to 36500");
  CHECK(refused(event("start", "3") + "," + event("end", "2")) ==
        "event 2: server a: a fault ends on day 2, before it begins on day 3");
  const auto titan = read_titan(
      "SN,location,insert,remove,duration,out,event\n1,c0,2016-04-26 18:00:00,2016-04-20 18:00:00,1,TRUE,OTB\n");
  REQUIRE_FALSE(titan);
  CHECK(titan.error() == "line 2: removed before it was inserted");
}

TEST_CASE("a policy that evicts nothing is told to look where pods speak") {
  DevicePolicy policy;
  policy.name = "gpus";
  policy.taint.emplace();
  const auto text = [&] { return cli::tune_text(year(), sweep(year(), running_of(&policy, {}), {})); };
  CHECK(text().contains("The policy evicts nothing"));
  policy.evict.emplace();
  CHECK_FALSE(text().contains("The policy evicts nothing"));
}

TEST_CASE("a choice that fits a bound only where nobody speaks is none for it") {
  using std::chrono::hours;
  FaultTrace trace{.unit = "cards", .devices = 10, .device_days = 1000};
  trace.to = WallTime(hours(2400));
  // The second fault falls into the hold, but is another incident where the driver says that the first is over.
  trace.broken = {{.name = "a",
                   .in_service = {{trace.from, trace.to}},
                   .faults = {{WallTime(), WallTime(hours(1))}, {WallTime(hours(10)), WallTime(hours(11))}}}};
  Grid grid;
  grid.quarantine_above = {1, 10};
  const auto all = sweep(trace, running_of(nullptr, {}), grid);
  const auto& [percent, silent, spoken] = all.budgets.back();
  CHECK(percent == 5);
  REQUIRE(silent);
  CHECK(silent->choice.recover.quarantine_above > 1);
  CHECK(share_held(trace, spoken->outcome) < 0.001);
}

TEST_CASE("of choices that are alike where nobody speaks a bound has the best where the driver does") {
  using std::chrono::hours;
  FaultTrace trace{.unit = "cards", .devices = 1000, .device_days = 100'000};
  trace.to = WallTime(hours(2400));
  trace.broken = {{.name = "a", .in_service = {{trace.from, trace.to}}, .faults = {}}};
  for (const int hour : {0, 10, 20}) {
    trace.broken.front().faults.push_back({WallTime(hours(hour)), WallTime(hours(hour + 1))});
  }
  Grid grid;
  grid.half_life = {hours(1), hours(720)};
  grid.quarantine_above = {1.5};
  auto running = running_of(nullptr, {});
  running.choice.recover.half_life = hours(720);
  const auto all = sweep(trace, running, grid);
  const auto& best = all.budgets.back();
  REQUIRE(best.silent);
  CHECK(best.silent->choice.recover.half_life == hours(720));
  CHECK(best.silent->choice.recover.quarantine_above == 1.5);
  CHECK(best.spoken->outcome.repeats == 1);
}
