#include "domain/tuning/front.h"

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::tuning;

namespace {

Point point(int held, std::size_t repeats, double limit = 1) {
  Point made;
  made.outcome.held_well = Millis(held);
  made.outcome.repeats = repeats;
  made.choice.recover.quarantine_above = limit;
  return made;
}

}  // namespace

TEST_CASE("the line has the points that no other beats, by the first measure") {
  const auto line = line_of(
      {point(5, 5), point(1, 9), point(9, 1), point(5, 6), point(6, 5), point(10, 1), point(1, 10)}, held_and_repeats);
  REQUIRE(line.size() == 3);
  CHECK(held_and_repeats(line[0].outcome) == Cost{1, 9});
  CHECK(held_and_repeats(line[1].outcome) == Cost{5, 5});
  CHECK(held_and_repeats(line[2].outcome) == Cost{9, 1});
}

TEST_CASE("of points that cost the same the first stands for all") {
  const auto line = line_of({point(5, 5, 2), point(5, 5, 3), point(5, 5, 4)}, held_and_repeats);
  REQUIRE(line.size() == 1);
  CHECK(line[0].choice.recover.quarantine_above == 2);
  CHECK(line[0].alike == 2);
}

TEST_CASE("a point beats another that is worse in one measure and no better in the other") {
  CHECK(beats({1, 1}, {1, 2}));
  CHECK(beats({1, 1}, {2, 1}));
  CHECK_FALSE(beats({1, 1}, {1, 1}));
  CHECK_FALSE(beats({1, 3}, {2, 2}));
}

TEST_CASE("how far a point is from the line is told in both measures") {
  const auto line = line_of({point(1, 9), point(3, 6), point(5, 5), point(9, 1)}, held_and_repeats);
  const auto off = distance_of(point(6, 6), line, held_and_repeats);
  CHECK_FALSE(off.is_on_line());
  REQUIRE(off.less_first);
  CHECK(held_and_repeats(off.less_first->outcome) == Cost{3, 6});
  REQUIRE(off.less_second);
  CHECK(held_and_repeats(off.less_second->outcome) == Cost{5, 5});
  // The same in one measure.
  const auto beside = distance_of(point(4, 6), line, held_and_repeats);
  CHECK(beside.less_first);
  CHECK_FALSE(beside.less_second);
  const auto above = distance_of(point(1, 10), line, held_and_repeats);
  CHECK_FALSE(above.less_first);
  CHECK(above.less_second);
  CHECK(distance_of(point(5, 5), line, held_and_repeats).is_on_line());
}
