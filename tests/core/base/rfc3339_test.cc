#include "base/rfc3339.h"

#include <doctest/doctest.h>

namespace {

using dhc::format_micro_time;
using dhc::format_rfc3339;
using dhc::parse_rfc3339;
using dhc::WallTime;
namespace chr = std::chrono;

const WallTime kEvening =
    chr::sys_days{chr::year{2026} / 11 / 20} + chr::hours{18} + chr::minutes{23} + chr::seconds{16};

TEST_CASE("A time as Kubernetes writes it is read to the second, and its fraction to the microsecond") {
  CHECK(parse_rfc3339("2026-11-20T18:23:16Z") == kEvening);
  CHECK(parse_rfc3339("2026-11-20T18:23:16.000001Z") == kEvening + chr::microseconds{1});
  CHECK(parse_rfc3339("2026-11-20T18:23:16.5Z") == kEvening + chr::milliseconds{500});
  CHECK(parse_rfc3339("2026-11-20T18:23:16.9999999999999999999Z") == kEvening + chr::microseconds{999'999});
}

TEST_CASE("An offset is taken off, whatever the day becomes") {
  CHECK(parse_rfc3339("2026-11-20T19:23:16+01:00") == kEvening);
  CHECK(parse_rfc3339("2026-11-21T02:08:16+07:45") == kEvening);
  CHECK(parse_rfc3339("2026-11-20T08:23:16-10:00") == kEvening);
}

TEST_CASE("Days that exist are read and others are not") {
  CHECK(parse_rfc3339("2024-02-29T00:00:00Z").has_value());
  CHECK(parse_rfc3339("0000-01-01T00:00:00Z").has_value());
  CHECK(parse_rfc3339("9999-12-31T23:59:59Z").has_value());
  for (const auto* text :
       {"2026-02-29T00:00:00Z", "2026-00-10T00:00:00Z", "2026-13-10T00:00:00Z", "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+00:60"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

TEST_CASE("Anything that is not exactly one RFC 3339 time is refused") {
  const std::string good = "2026-11-20T18:23:16.123456+01:00";
  REQUIRE(parse_rfc3339(good).has_value());
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(parse_rfc3339(good.substr(0, size)).has_value());
  }
  for (const auto* text : {"2026-11-20T18:23:16", "2026-11-20T18:23:16ZZ", "2026-11-20 18:23:16Z",
                           " 2026-11-20T18:23:16Z", "2026-11-20T18:23:16.Z", "+2026-11-20T18:23:16Z",
                           "2026-1-20T18:23:16Z", "20261120T182316Z", "2026-11-20T18:23:-1Z", "2026-11-20t18:23:16z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

TEST_CASE("A time is written to the second, rounded down, before 1970 too") {
  CHECK(format_rfc3339(kEvening + chr::microseconds{999'999}) == "2026-11-20T18:23:16Z");
  CHECK(format_rfc3339(WallTime{} - chr::microseconds{1}) == "1969-12-31T23:59:59Z");
}

TEST_CASE("A MicroTime has exactly six digits") {
  CHECK(format_micro_time(kEvening) == "2026-11-20T18:23:16.000000Z");
  CHECK(format_micro_time(kEvening + chr::microseconds{42}) == "2026-11-20T18:23:16.000042Z");
  CHECK(format_micro_time(WallTime{} - chr::microseconds{1}) == "1969-12-31T23:59:59.999999Z");
}

TEST_CASE("Times beyond four digits of year are written as the first or last that has four") {
  CHECK(format_rfc3339(WallTime::max()) == "9999-12-31T23:59:59Z");
  CHECK(format_micro_time(WallTime::min()) == "0000-01-01T00:00:00.000000Z");
}

TEST_CASE("What is written is read back") {
  for (const auto micros : {0LL, 1LL, -1LL, 1'795'000'000'123'456LL, -62'167'219'200'000'000LL}) {
    const WallTime when{chr::microseconds{micros}};
    CHECK(parse_rfc3339(format_micro_time(when)) == when);
  }
}

}  // namespace
