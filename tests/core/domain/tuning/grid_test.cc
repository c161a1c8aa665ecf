#include "domain/tuning/grid.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::tuning;

namespace {

std::string refused(std::string_view text) {
  Grid grid;
  const auto taken = take_axis(grid, text);
  return taken ? "" : taken.error();
}

}  // namespace

TEST_CASE("values that are asked for replace those of their key, each once") {
  auto grid = default_grid();
  REQUIRE(take_axis(grid, "hold=1h,90m,1h"));
  CHECK(grid.hold == std::vector<Millis>{std::chrono::hours(1), std::chrono::minutes(90)});
  CHECK(grid.half_life == default_grid().half_life);
  REQUIRE(take_axis(grid, "quarantineAbove=1.75"));
  CHECK(grid.quarantine_above == std::vector<double>{1.75});
}

TEST_CASE("every key goes where it belongs") {
  Grid grid;
  for (const char* axis : {"after=5s", "halfLife=48h", "brake.percent=11", "brake.atLeast=12", "brake.within=13s",
                           "caps.cluster.percent=14", "caps.cluster.atLeast=15", "caps.node.percent=16",
                           "caps.node.atLeast=17", "caps.perDay.percent=18", "caps.perDay.atLeast=19"}) {
    const auto taken = take_axis(grid, axis);
    REQUIRE_MESSAGE(taken, taken.error());
  }
  CHECK(grid.after == std::vector<Millis>{Seconds(5)});
  CHECK(grid.half_life == std::vector<Millis>{std::chrono::hours(48)});
  CHECK(grid.brake_percent == std::vector<std::int64_t>{11});
  CHECK(grid.brake_at_least == std::vector<std::int64_t>{12});
  CHECK(grid.brake_within == std::vector<Millis>{Seconds(13)});
  CHECK(grid.cap_cluster.percent == std::vector<std::int64_t>{14});
  CHECK(grid.cap_cluster.at_least == std::vector<std::int64_t>{15});
  CHECK(grid.cap_node.percent == std::vector<std::int64_t>{16});
  CHECK(grid.cap_node.at_least == std::vector<std::int64_t>{17});
  CHECK(grid.cap_per_day.percent == std::vector<std::int64_t>{18});
  CHECK(grid.cap_per_day.at_least == std::vector<std::int64_t>{19});
}

TEST_CASE("a value that a policy would refuse is refused in the policy's words, with key and value") {
  CHECK(refused("hold=200h").starts_with("hold=200h: spec.recover.hold"));
  CHECK(refused("quarantineAbove=0.5").starts_with("quarantineAbove=0.5: spec.recover.quarantineAbove"));
  CHECK(refused("hold=1h,soon").starts_with("hold=soon: spec.recover.hold"));
  CHECK(refused("brake.percent=0").starts_with("brake.percent=0: spec.brake.percent"));
  CHECK(refused("caps.node.percent=101").starts_with("caps.node.percent=101: spec.caps.node.percent"));
}

TEST_CASE("what is no list of values is refused with the form that it should have") {
  CHECK(refused("hold") == "'hold' has no values: write hold=VALUE,VALUE");
  CHECK(refused("hold=") == "'hold=' has no values: write hold=VALUE,VALUE");
  CHECK(refused("hold=1h,,2h") == "hold: '' is no value; write hold=VALUE,VALUE");
  CHECK(refused("hold=1h}, then: Keep # ").starts_with("hold: '1h}' is no value"));
  CHECK(refused("hald=1h").starts_with("'hald' cannot be swept, did you mean 'hold'?: write one of after, "));
}

TEST_CASE("a grid of too many choices is refused") {
  Grid grid;
  CHECK(check_size(grid));
  CHECK(check_size(default_grid()));
  for (int i = 0; i < 142; ++i) {
    grid.hold.push_back(Millis(i));
    grid.half_life.push_back(Millis(i));
  }
  REQUIRE_FALSE(check_size(grid));
  CHECK(check_size(grid).error() == "20164 choices are more than 20000: give fewer values to a key");
}
