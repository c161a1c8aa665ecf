#include "base/backoff.h"

#include <limits>

#include <doctest/doctest.h>

using namespace dhc;

namespace {

constexpr MonoTime kStart = MonoTime(Seconds(1000));
constexpr double kAlmostOne = 0.999999;

}  // namespace

TEST_CASE("A back-off doubles its bound from 0.8 s to 30 s") {
  Backoff backoff;
  auto now = kStart;
  for (const auto bound : {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000}) {
    const auto wait = backoff.next(now, kAlmostOne);
    CHECK(wait <= Millis(bound));
    CHECK(wait >= Millis(bound - 1));
    now += wait;
  }
}

TEST_CASE("A back-off draws evenly below its bound but never below its floor") {
  Backoff backoff;
  CHECK(backoff.next(kStart, 0.5) == Millis(400));
  CHECK(backoff.next(kStart, 0.5) == Millis(800));
  CHECK(backoff.next(kStart, 0.0) == Millis(100));
}

TEST_CASE("A back-off forgets after two minutes of health counted from the end of its wait") {
  Backoff almost;
  const auto ready = kStart + almost.next(kStart, 0.5);
  CHECK(almost.next(ready + std::chrono::minutes(2) - Millis(1), 0.5) == Millis(800));
  Backoff at;
  CHECK(at.next(kStart, 0.5) == Millis(400));
  CHECK(at.next(ready + std::chrono::minutes(2), 0.5) == Millis(400));
}

TEST_CASE("A back-off that is reset starts again") {
  Backoff backoff;
  CHECK(backoff.next(kStart, 0.5) == Millis(400));
  backoff.reset();
  CHECK(backoff.next(kStart, 0.5) == Millis(400));
}

TEST_CASE("A back-off takes the middle for a chance that is none") {
  for (const double chance :
       {-0.1, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Backoff backoff;
    CHECK(backoff.next(kStart, chance) == Millis(400));
  }
}
