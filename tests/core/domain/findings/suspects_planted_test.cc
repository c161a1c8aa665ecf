// Whether the right one is suspected where it is known who is guilty: the first schedules of `make bench-suspects`.
#include <cstddef>
#include <map>

#include <doctest/doctest.h>

#include "bench/suspects/planted.h"

namespace dhc {

TEST_CASE("Over random days in which it is known what breaks devices, who is suspected is guilty, and costs little" *
          doctest::test_suite("long")) {
  std::map<planted::Truth, planted::Tally> tallies;
  for (std::size_t number = 0; number < 30; ++number) {
    const auto truth = planted::truth_of(number);
    const auto tally = planted::play(truth, number);
    CAPTURE(number);
    CAPTURE(planted::to_string(truth));
    CHECK(tally.wrong == 0);
    CHECK(tally.nodes_wrong == 0);
    CHECK(tally.drivers_wrong == 0);
    CHECK(tally.most_a_day <= 2);
    CHECK(tally.most_excused <= 1);
    tallies[truth].add(tally);
  }
  planted::Tally all;
  for (const auto& [truth, tally] : tallies) all.add(tally);
  CHECK(all.right >= 6);
  CHECK(all.in_the_end * 3 >= all.clear * 2);
  CHECK(tallies.at(planted::Truth::Image).right > 0);
  CHECK(tallies.at(planted::Truth::Driver).moved > 0);
  CHECK(all.nodes_right > 0);
  CHECK(all.drivers_right > 0);
}

TEST_CASE("What a run of schedules leaves is read by the next as it was written") {
  std::map<planted::Truth, planted::Tally> tallies;
  auto& tally = tallies[planted::Truth::Image];
  tally.schedules = 3;
  tally.broken = 40;
  tally.most_a_day = 2;
  const auto text = planted::lines_of(tallies);
  std::map<planted::Truth, planted::Tally> read;
  REQUIRE(planted::add_lines(text, read));
  CHECK(planted::lines_of(read) == text);
  REQUIRE(planted::add_lines(text, read));
  CHECK(read.at(planted::Truth::Image).broken == 80);
  CHECK(read.at(planted::Truth::Image).most_a_day == 2);
  for (const auto* bad : {"0 1\n", "x\n", "99 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", "0 0"}) {
    CHECK_FALSE(planted::add_lines(bad, read));
  }
}

}  // namespace dhc
