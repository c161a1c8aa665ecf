#include "domain/limits/attempt.h"

#include <doctest/doctest.h>

namespace dhc {

namespace {

Now at(Millis time) { return {.mono = MonoTime(time), .wall = WallTime(time)}; }

}  // namespace

TEST_CASE("Six writes use up an object's minute, orders that were taken back do not") {
  Attempt attempt;
  for (int i = 0; i < 100; ++i) {
    note_sent(attempt, "1", at(Millis(i)));
    note_done(attempt, fail(ErrorKind::Cancelled, "not sent"), at(Millis(i)));
    CHECK(!too_often(attempt, at(Millis(i))));
    CHECK(attempt.not_before == MonoTime(Millis(i)));
    CHECK(attempt.failures == 0);
  }
  for (int i = 0; i < kWritesAMinute; ++i) {
    CHECK(!too_often(attempt, at(Seconds(1))));
    note_sent(attempt, "1", at(Seconds(1)));
    note_done(attempt, {}, at(Seconds(1)));
  }
  CHECK(too_often(attempt, at(Seconds(59))));
  CHECK(!too_often(attempt, at(Seconds(62))));
}

TEST_CASE("A failure waits by its remedy, and longer each time") {
  Attempt attempt;
  for (const int seconds : {1, 2, 4, 8}) {
    note_sent(attempt, "1", at(Seconds(0)));
    note_done(attempt, fail(ErrorKind::Unavailable, "no"), at(Seconds(0)));
    CHECK(attempt.not_before == MonoTime(Seconds(seconds)));
  }
  note_done(attempt, {}, at(Seconds(0)));
  CHECK(attempt.failures == 0);
  CHECK(backoff_after(fail(ErrorKind::Conflict, "").error(), 1) == kUnseen);
}

TEST_CASE("A Retry-After is waited for after every answer of a server that cannot, also a 504 or a budget's 429") {
  for (const auto kind : {ErrorKind::TooManyRequests, ErrorKind::Unavailable, ErrorKind::Doubtful, ErrorKind::Declined,
                          ErrorKind::TimedOut, ErrorKind::Blocked}) {
    Error error{.kind = kind, .message = "", .retry_after = std::chrono::minutes(5)};
    CAPTURE(to_string(kind));
    CHECK(backoff_after(error, 1) == std::chrono::minutes(5));
    error.retry_after = Millis(1);  // never sooner than by our own
    CHECK(backoff_after(error, 1) >= Seconds(1));
  }
}

}  // namespace dhc
