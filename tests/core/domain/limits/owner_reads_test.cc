#include "domain/limits/owner_reads.h"

#include <chrono>

#include <doctest/doctest.h>

namespace dhc {

namespace {
Now read_time(Millis since) { return {.mono = MonoTime(std::chrono::hours(100)) + since, .wall = {}}; }
}  // namespace

TEST_CASE(
    "One owner of a namespace is read at a time, and one whose answer never comes holds the next for two minutes") {
  OwnerReads reads;
  CHECK_FALSE(reads.busy_until("team", read_time(Seconds(0))));
  reads.sent("team", "a", read_time(Seconds(0)));
  CHECK(reads.busy_until("team", read_time(Seconds(0))) == read_time(OwnerReads::kUnanswered).mono);
  CHECK_FALSE(reads.busy_until("other", read_time(Seconds(0))));
  CHECK(reads.busy_until("team", read_time(OwnerReads::kUnanswered - Millis(1))));
  CHECK_FALSE(reads.busy_until("team", read_time(OwnerReads::kUnanswered)));
  CHECK(reads.last_of("team") == read_time(Seconds(0)).mono);
}

TEST_CASE("An answer that nobody waits for changes nothing: one that comes twice, or to another read") {
  OwnerReads reads;
  const auto failed = [] { return Status(fail(ErrorKind::Unavailable, "no")); };
  reads.sent("team", "a", read_time(Seconds(0)));
  reads.done("team", "b", read_time(Seconds(0)).mono, failed(), read_time(Seconds(1)));
  reads.done("team", "a", read_time(Seconds(5)).mono, failed(), read_time(Seconds(1)));
  reads.done("other", "a", read_time(Seconds(0)).mono, failed(), read_time(Seconds(1)));
  CHECK(reads.busy_until("team", read_time(Seconds(1))));
  CHECK(reads.not_before("a") == MonoTime::min());
  reads.done("team", "a", read_time(Seconds(0)).mono, {}, read_time(Seconds(1)));
  CHECK_FALSE(reads.busy_until("team", read_time(Seconds(1))));
  reads.done("team", "a", read_time(Seconds(0)).mono, failed(), read_time(Seconds(2)));
  CHECK(reads.not_before("a") == MonoTime::min());
}

TEST_CASE("An owner that cannot be read is left alone longer each time, and no longer once it could be") {
  OwnerReads reads;
  Millis waited{0};
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto now = read_time(std::chrono::hours(attempt));
    reads.sent("team", "a", now);
    reads.done("team", "a", now.mono, fail(ErrorKind::Unavailable, "no"), now);
    const Millis wait = std::chrono::duration_cast<Millis>(reads.not_before("a") - now.mono);
    CHECK(wait > waited);
    waited = wait;
  }
  reads.sent("team", "a", read_time(std::chrono::hours(4)));
  reads.done("team", "a", read_time(std::chrono::hours(4)).mono, {}, read_time(std::chrono::hours(4)));
  CHECK(reads.not_before("a") == MonoTime::min());
}

TEST_CASE("A read that was never sent is no failure, and what is an hour old is forgotten") {
  OwnerReads reads;
  reads.sent("team", "a", read_time(Seconds(0)));
  reads.done("team", "a", read_time(Seconds(0)).mono, fail(ErrorKind::Cancelled, "taken back"), read_time(Seconds(0)));
  CHECK(reads.not_before("a") == MonoTime::min());
  CHECK_FALSE(reads.busy_until("team", read_time(Seconds(0))));
  reads.forget(read_time(std::chrono::hours(1) - Millis(1)));
  CHECK(reads.last_of("team") == read_time(Seconds(0)).mono);
  reads.forget(read_time(std::chrono::hours(1)));
  CHECK(reads.last_of("team") == MonoTime::min());
}

}  // namespace dhc
