#include "domain/policy/config_duration.h"

#include <string>

#include <doctest/doctest.h>

using namespace dhc;

TEST_CASE("durations are read as Go writes them") {
  CHECK(parse_duration("0s") == Millis(0));
  CHECK(parse_duration("90s") == Seconds(90));
  CHECK(parse_duration("1h30m") == std::chrono::minutes(90));
  CHECK(parse_duration("500ms") == Millis(500));
  CHECK(parse_duration("1h2m3s4ms") == Millis(3723004));
  CHECK(parse_duration("720h") == std::chrono::hours(720));
}

TEST_CASE("other durations are refused with the reason") {
  const auto why = [](const char* text) { return parse_duration(text) ? "" : parse_duration(text).error(); };
  CHECK(why("") == "an empty duration");
  CHECK(why("60") == "a duration needs a unit");
  CHECK(why("0") == "a duration needs a unit");
  CHECK(why("1h30") == "a duration needs a unit");
  CHECK(why("1d") == "durations have no days; 1 day is 24h");
  CHECK(why("1.5h") == "durations have no fractions; 1.5h is 1h30m");
  CHECK(why("-5s") == "a duration has no sign");
  CHECK(why("+5s") == "a duration has no sign");
  CHECK(why("5us") == "finer than a millisecond");
  CHECK(why("30m1h") == "units go from large to small, each once");
  CHECK(why("1s1s") == "units go from large to small, each once");
  CHECK(why("5 s") == "' s' is no unit of time");
  CHECK(why("h") == "a number should stand before 'h'");
  CHECK(why("720h1ms") == "longer than 30 days (720h)");
  CHECK(why("99999999999999999999h") == "longer than 30 days (720h)");
}

TEST_CASE("a duration's text reads back the same") {
  for (const char* text : {"0s", "1ms", "90m", "1h30m", "720h", "59s999ms"}) {
    const auto duration = parse_duration(text);
    REQUIRE(duration);
    CHECK(parse_duration(format_duration(*duration)) == *duration);
  }
  CHECK(format_duration(std::chrono::minutes(90)) == "1h30m");
  CHECK(format_duration(Millis(0)) == "0s");
}
