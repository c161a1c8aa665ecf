#include "k8s-client/protocol/retry_after.h"

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {
constexpr auto kDate = std::string_view("Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST_CASE("seconds are granted up to five minutes") {
  CHECK(parse_retry_after("0", std::nullopt) == Millis(0));
  CHECK(parse_retry_after(" 1 ", std::nullopt) == Millis(1000));
  CHECK(parse_retry_after("300", std::nullopt) == Millis(300'000));
  CHECK(parse_retry_after("301", std::nullopt) == Millis(300'000));
  CHECK(parse_retry_after("99999999999999999999999999", std::nullopt) == Millis(300'000));
}

TEST_CASE("negative, fractional and garbled waits are no wish at all") {
  for (const auto* const value : {"", " ", "-1", "+1", "1.5", "1s", "soon", "0x10", "1 2"}) {
    CAPTURE(value);
    CHECK_FALSE(parse_retry_after(value, kDate).has_value());
  }
}

TEST_CASE("an HTTP date is measured against the response's own Date") {
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:57 GMT", kDate) == Millis(20'000));
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:17 GMT", kDate) == Millis(0));
  CHECK(parse_retry_after("Tue, 31 Dec 9999 23:59:59 GMT", kDate) == Millis(300'000));
  CHECK_FALSE(parse_retry_after("Sun, 06 Nov 1994 08:49:57 GMT", std::nullopt).has_value());
  CHECK_FALSE(parse_retry_after("Sun, 06 Nov 1994 08:49:57 GMT", "yesterday").has_value());
}

TEST_CASE("dates that do not exist are not read") {
  CHECK(parse_http_date(kDate) == WallTime(Seconds(784111777)));
  for (const auto* const value :
       {"Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:3x GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 00 Nov 1994 08:49:37 GMT"}) {
    CAPTURE(value);
    CHECK_FALSE(parse_http_date(value).has_value());
  }
}
