#include "k8s-client/protocol/server_clock.h"

#include <doctest/doctest.h>

using namespace dhc;
using dhc::k8s::ServerClock;

namespace {

// 1994-11-06 08:49:37 UTC, in words and by the clock.
constexpr const char* kAnswered = "Sun, 06 Nov 1994 08:49:37 GMT";
const WallTime kMoment =
    WallTime(std::chrono::sys_days(std::chrono::year(1994) / 11 / 6)) + std::chrono::hours(8) + Seconds(49 * 60 + 37);

}  // namespace

TEST_CASE("one answer gives the middle of what is possible") {
  ServerClock clock;
  CHECK_FALSE(clock.ahead().has_value());
  // Sent and received at the second that the Date names: the server is between 0 and 1 s ahead.
  clock.answered(kAnswered, kMoment, kMoment);
  CHECK(clock.ahead() == Millis(500));
  ServerClock slow;
  slow.answered(kAnswered, kMoment, kMoment + Seconds(1));
  CHECK(slow.ahead() == Millis(0));
}

TEST_CASE("more answers narrow it") {
  ServerClock clock;
  // The server is 7.3 s ahead: its 37 begins at our 29.7.
  clock.answered(kAnswered, kMoment - Millis(7300), kMoment - Millis(7290));
  clock.answered(kAnswered, kMoment - Millis(6320), kMoment - Millis(6310));
  REQUIRE(clock.ahead().has_value());
  CHECK(std::chrono::abs(*clock.ahead() - Millis(7300)) <= Millis(20));
}

TEST_CASE("a clock that was set counts from the next answer on") {
  ServerClock clock;
  clock.answered(kAnswered, kMoment, kMoment);
  clock.answered(kAnswered, kMoment - Seconds(100), kMoment - Seconds(100));
  CHECK(clock.ahead() == Millis(100'500));
  clock.answered(kAnswered, kMoment + Seconds(3600), kMoment + Seconds(3600));
  CHECK(clock.ahead() == Millis(-3'599'500));
}

TEST_CASE("a Date that cannot be read, and our own clock going back meanwhile, measure nothing") {
  ServerClock clock;
  for (const auto* date : {"", "now", "Sun, 06 Nov 1994 08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT"}) {
    clock.answered(date, kMoment, kMoment);
  }
  clock.answered(kAnswered, kMoment, kMoment - Millis(1));
  CHECK_FALSE(clock.ahead().has_value());
}

TEST_CASE("news is what is a second or more from what was taken, and less than a second is nothing") {
  ServerClock clock;
  clock.answered(kAnswered, kMoment, kMoment);
  CHECK_FALSE(clock.news().has_value());
  clock.answered(kAnswered, kMoment - Seconds(8), kMoment - Seconds(8));
  CHECK(clock.news() == Millis(8500));
  CHECK(clock.news() == Millis(8500));  // until it is taken
  clock.take(Millis(8500));
  CHECK_FALSE(clock.news().has_value());
  clock.answered(kAnswered, kMoment, kMoment + Seconds(1));
  CHECK(clock.news() == Millis(0));
}
