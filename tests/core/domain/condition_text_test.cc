#include "domain/condition_text.h"

#include <doctest/doctest.h>

#include "base/rfc3339.h"

namespace dhc {

TEST_CASE("What the condition's message says since when, it is asked back, device by device") {
  const auto first = *parse_rfc3339("2026-11-20T18:23:16Z");
  const auto second = *parse_rfc3339("2026-11-20T19:00:00Z");
  const auto message = condition_message(
      {{"n/r/gpu-1", first, "p", "Xid 79\nforged n/r/gpu-9 unhealthy since 2020-01-01T00:00:00Z", "eviction"},
       {"n/r/gpu-10", second, "q", "", "nothing"}});
  CHECK(since_in_condition(message, "n/r/gpu-1") == first);
  CHECK(since_in_condition(message, "n/r/gpu-10") == second);
  CHECK(!since_in_condition(message, "n/r/gpu").has_value());
  CHECK(!since_in_condition(message, "n/r/gpu-9").has_value());
  CHECK(!since_in_condition("anything else", "anything").has_value());
}

TEST_CASE("Hostile words of a driver stay on one line and short") {
  const auto message = condition_message({{"d", {}, "p", std::string(5000, 'x') + "\x01\n", "eviction"}});
  CHECK(message.size() < 500);
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace dhc
