#include "domain/policy/pause.h"

#include <doctest/doctest.h>

#include "base/rfc3339.h"

namespace {
using namespace dhc;

constexpr auto kUntil = "2026-11-20T12:00:00Z";

Policy paused_until(std::string until, std::string reason = {}) {
  Policy policy;
  policy.pause_until = std::move(until);
  policy.pause_reason = std::move(reason);
  return policy;
}
}  // namespace

TEST_CASE("a pause holds up to its last moment, and not at its end") {
  const auto end = parse_rfc3339(kUntil).value();
  const auto policy = paused_until(kUntil, "network change\n");
  const auto pause = pause_of(policy, end - Millis(1));
  REQUIRE(pause);
  CHECK(pause->why == "paused until 2026-11-20T12:00:00Z: network change ");
  CHECK(end_of(*pause, {.mono = MonoTime(Millis(7)), .wall = end - Millis(1)}) == MonoTime(Millis(8)));
  CHECK_FALSE(pause_of(policy, end));
  CHECK(pause_of(paused_until(kUntil), end - Millis(1))->why == "paused until 2026-11-20T12:00:00Z");
}

TEST_CASE("a time that cannot be read pauses until somebody corrects it") {
  const auto pause = pause_of(paused_until("tomorrow"), parse_rfc3339(kUntil).value());
  REQUIRE(pause);
  CHECK_FALSE(pause->until);
  CHECK(pause->why.find("\"tomorrow\", is not an RFC 3339 time: paused until it is corrected or removed") !=
        std::string::npos);
  CHECK_FALSE(end_of(*pause, {}));
}

TEST_CASE("paused: true holds whatever the annotation says, and without either nothing is paused") {
  auto policy = paused_until("2020-01-01T00:00:00Z");
  CHECK_FALSE(pause_of(policy, parse_rfc3339(kUntil).value()));
  policy.limits.paused = true;
  CHECK(pause_of(policy, parse_rfc3339(kUntil).value()) ==
        Pause{.why = "ControllerLimits has paused: true", .until = {}});
  CHECK_FALSE(pause_of(Policy(), parse_rfc3339(kUntil).value()));
}

TEST_CASE("an end in the year 9999 stays within the clock's range") {
  const Now now{.mono = MonoTime::max() - std::chrono::hours(24 * 400), .wall = parse_rfc3339(kUntil).value()};
  const auto pause = pause_of(paused_until("9999-12-31T23:59:59Z"), now.wall);
  REQUIRE(pause);
  CHECK(*end_of(*pause, now) == now.mono + std::chrono::hours(24 * 366));
}
