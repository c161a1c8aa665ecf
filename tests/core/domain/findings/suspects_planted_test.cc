// How often the right workload is suspected where it is known who is guilty: a part of `make bench-suspects`.
#include <doctest/doctest.h>

#include "bench/suspects/planted.h"

namespace dhc {

TEST_CASE(
    "Over random weeks in which it is known what breaks devices, the workload that is suspected is the guilty one") {
  planted::Tally all;
  for (const auto truth : planted::kTruths) {
    // Where a driver breaks whole fleets a week takes ten times as long.
    const std::size_t schedules = truth == planted::Truth::Driver ? 2 : 14;
    planted::Tally tally;
    for (std::size_t seed = 0; seed < schedules; ++seed) planted::play(truth, seed + 100'000, 10, tally);
    INFO(planted::to_string(truth));
    CHECK(tally.most_taken <= 2);
    CHECK(tally.most_excused <= 1);
    if (truth == planted::Truth::Program) CHECK(tally.in_the_end * 3 >= tally.visible);
    all.right += tally.right;
    all.wrong += tally.wrong;
  }
  REQUIRE(all.right > 10);
  CHECK(all.right >= 99 * all.wrong);
}

}  // namespace dhc
