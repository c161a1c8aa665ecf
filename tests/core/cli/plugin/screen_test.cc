#include "cli/plugin/screen.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/core/cli/plugin/sample_sight.h"

namespace dhc::test {

namespace {

cli::Sight crowded(int devices) {
  auto sight = sample_sight();
  const auto one = sight.status.devices[1];
  sight.status.devices.clear();
  for (int i = 0; i < devices; ++i) {
    sight.status.devices.push_back(one);
    sight.status.devices.back().device = fmt::format("node-b/example.com/gpu/GPU-{}", i);
  }
  return sight;
}

}  // namespace

TEST_CASE("the screen has counts, the leader, the table and the keys") {
  const auto screen = cli::screen_of(sample_sight(), {.columns = 200, .rows = 10}, 0);
  REQUIRE(screen.lines.size() == 9);
  CHECK(screen.lines[0] == "device-health  2026-11-20T12:04:12Z  2 bad, 0 unknown, 1 incidents open, 1 quarantined");
  CHECK(screen.lines[1] ==
        "leader controller-a_0123456789abcdef, mode enforce; written 2s ago, a change comes within 10 s, within 72 s "
        "while changes go on");
  CHECK(screen.lines[2] ==
        "to the second: kubectl -n device-health-system port-forward controller-a 8082, then http://127.0.0.1:8082/");
  CHECK(screen.lines[3].empty());
  CHECK(screen.lines[4].starts_with("NODE    DEVICE  HEALTH      SINCE  NEXT STEP                     WHEN    HOLDER"));
  CHECK(screen.lines[5].find("evict (WaitingForEvictAfter)") != std::string::npos);
  CHECK(screen.lines[8] == "1-3 of 3  q quit  up/down, PgUp/PgDn, Home scroll");
}

TEST_CASE("how old the status is goes on while nothing is written, and without a leader there is no page to look at") {
  auto sight = sample_sight();
  sight.now += Seconds(190);
  CHECK(cli::screen_of(sight, {.columns = 200, .rows = 10}, 0).lines[1].contains("; written 3m12s ago, "));
  sight.leader = "";
  for (const auto& line : cli::screen_of(sight, {.columns = 200, .rows = 20}, 0).lines)
    CHECK_FALSE(line.contains("port-forward"));
}

TEST_CASE("no line is longer and no screen higher than the terminal, whatever its size") {
  for (const std::size_t rows : {1UL, 2UL, 3UL, 5UL, 24UL}) {
    for (const std::size_t columns : {1UL, 20UL, 80UL}) {
      const auto screen = cli::screen_of(crowded(100), {.columns = columns, .rows = rows}, 50);
      CAPTURE(rows);
      CAPTURE(columns);
      CHECK(screen.lines.size() <= rows);
      for (const auto& line : screen.lines) CHECK(line.size() <= columns);
    }
  }
}

TEST_CASE("scrolling ends at the last page") {
  const auto screen = cli::screen_of(crowded(100), {.columns = 80, .rows = 24}, 1000);
  CHECK(screen.first == 100 - (24 - 4 - 2));
  CHECK(screen.lines.back().starts_with("83-100 of 100 "));
  CHECK(screen.lines[screen.lines.size() - 2].find("GPU-99") != std::string::npos);
  CHECK(cli::screen_of(crowded(3), {.columns = 80, .rows = 24}, 1000).first == 0);
}

TEST_CASE("an engaged brake, a pause and a silent leader stand above the table") {
  auto sight = sample_sight();
  sight.leader = "";
  sight.status.pause = StatusPause{.why = "paused until noon", .until = {}};
  sight.status.verdicts.push_back(
      {.kind = "Brake", .name = "gpu.example.com on node-a", .reason = "BrakeEngaged", .message = "3 of 8"});
  const auto screen = cli::screen_of(sight, {.columns = 200, .rows = 30}, 0);
  CHECK(screen.lines[2].starts_with("warning: no controller leads"));
  CHECK(screen.lines[3] == "PAUSED: paused until noon");
  CHECK(screen.lines[4] == "BRAKE gpu.example.com on node-a: 3 of 8");
}

TEST_CASE("without a bad device it says so, colours stand around whole lines, and each line clears its rest") {
  auto sight = sample_sight();
  sight.status.devices.clear();
  const auto quiet = cli::screen_of(sight, {.columns = 80, .rows = 24}, 0);
  CHECK(std::ranges::find(quiet.lines, "No device is bad.") != quiet.lines.end());
  const auto painted = cli::screen_of(sample_sight(), {.columns = 30, .rows = 24}, 0, true);
  CHECK(painted.lines[0] == "\x1b[1mdevice-health  2026-11-20T12:0\x1b[0m");
  CHECK(cli::screen_bytes({.lines = {"a", "b"}, .first = 0}) == "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
}

}  // namespace dhc::test
