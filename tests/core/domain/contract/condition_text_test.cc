#include "domain/contract/condition_text.h"

#include <doctest/doctest.h>

#include "base/rfc3339.h"

namespace dhc {

TEST_CASE("What the condition's message says since when, it is asked back, device by device") {
  const auto first = *parse_rfc3339("2026-11-20T18:23:16Z");
  const auto second = *parse_rfc3339("2026-11-20T19:00:00Z");
  const auto message = condition_message(
      {{"n/r/gpu-1", first, "p", "Xid 79\nforged n/r/gpu-9 unhealthy since 2020-01-01T00:00:00Z", "eviction"},
       {"n/r/gpu-10", second, "q", "", "nothing"}});
  const auto words = read_condition(message);
  CHECK(words.devices.size() == 2);
  REQUIRE(words.find("n/r/gpu-1") != nullptr);
  CHECK(words.find("n/r/gpu-1")->since == first);
  REQUIRE(words.find("n/r/gpu-10") != nullptr);
  CHECK(words.find("n/r/gpu-10")->since == second);
  CHECK(words.find("n/r/gpu") == nullptr);
  CHECK(words.find("n/r/gpu-9") == nullptr);
  CHECK(read_condition("anything else").devices.empty());
}

TEST_CASE("Since when a pod has been told of its eviction is read back, and no driver's words make it up") {
  const auto since = *parse_rfc3339("2026-11-20T18:23:16Z");
  const auto noticed = *parse_rfc3339("2026-11-20T18:24:16Z");
  const auto due = *parse_rfc3339("2026-11-20T18:29:16Z");
  const std::string forged = "x; next: eviction, due at 2020-01-01T00:00:00Z, noticed at 2020-01-01T00:00:00Z";
  CHECK(next_eviction(due, noticed) == "eviction, due at 2026-11-20T18:29:16Z, noticed at 2026-11-20T18:24:16Z");
  const auto words = read_condition(condition_message({{"gpu-1", since, "p", forged, next_eviction(due, noticed)},
                                                       {"gpu-2", since, "p", forged, next_eviction(due, std::nullopt)},
                                                       {"gpu-3", since, "p", forged, "no eviction (OptedOut): x"}}));
  CHECK(words.find("gpu-1")->noticed == noticed);
  CHECK_FALSE(words.find("gpu-2")->noticed);
  CHECK_FALSE(words.find("gpu-3")->noticed);
  CHECK(words.noticed() == noticed);
  CHECK_FALSE(
      read_condition("gpu-1 unhealthy since 2026-11-20T18:23:16Z (policy p); next: eviction, due at 2026").noticed());
}

TEST_CASE("Since when a pod has been told is read back, also where its message does not name all of its devices") {
  const auto since = *parse_rfc3339("2026-11-20T18:23:16Z");
  const auto noticed = *parse_rfc3339("2026-11-20T18:24:16Z");
  const auto later = noticed + Seconds(60);
  const auto due = *parse_rfc3339("2026-11-20T18:29:16Z");
  std::vector<ConditionLine> lines;
  for (int i = 1000; i < 2000; ++i)
    lines.push_back({"n/r/gpu-" + std::to_string(i), since, "p", std::string(300, 'x'), "nothing"});
  const auto before = read_condition(condition_message(lines));
  REQUIRE(before.cut);
  REQUIRE(before.find("n/r/gpu-1999") == nullptr);
  lines[998].next = next_eviction(due, later);
  lines[999].next = next_eviction(due, noticed);
  const auto message = condition_message(lines);
  CHECK(message.size() <= kLongestCondition);
  const auto words = read_condition(message);
  CHECK(words.cut);
  CHECK(words.noticed() == noticed);
  REQUIRE(words.find("n/r/gpu-1999") != nullptr);
  CHECK(words.find("n/r/gpu-1000") != nullptr);
  CHECK(message.ends_with(" more devices"));
  // Where all are named the order is the callers'.
  lines.resize(3);
  lines[2].next = next_eviction(due, noticed);
  CHECK(condition_message(lines).starts_with("n/r/gpu-1000 "));
}

TEST_CASE("A device whose name holds our words tells no time of another") {
  const std::string forged = "n/r/gpu-1 unhealthy since 2020-01-01T00:00:00Z (policy p)";
  const auto words =
      read_condition(condition_message({{forged, *parse_rfc3339("2026-11-20T18:23:16Z"), "p", "", "x"}}));
  CHECK(words.find("n/r/gpu-1") == nullptr);
  REQUIRE(words.find(forged) != nullptr);
  CHECK(words.find(forged)->since == *parse_rfc3339("2026-11-20T18:23:16Z"));
}

TEST_CASE("A recovery is read back as it was written, and one of too many devices says how many it does not name") {
  const auto since = *parse_rfc3339("2026-11-20T18:23:16Z");
  const auto two = recovery_message({{"n/r/gpu-1", since}, {"n/r/gpu-2", since}});
  CHECK(two == "n/r/gpu-1 healthy since 2026-11-20T18:23:16Z || n/r/gpu-2 healthy since 2026-11-20T18:23:16Z");
  REQUIRE(read_recovery(two).find("n/r/gpu-2") != nullptr);
  CHECK(read_recovery(two).find("n/r/gpu-2")->since == since);
  CHECK(read_recovery(two).find("n/r/gpu") == nullptr);
  CHECK(read_recovery(condition_message({{"n/r/gpu-1", since, "p", "", "eviction"}})).devices.empty());
  std::vector<RecoveryLine> many;
  for (int i = 0; i < 2000; ++i) many.push_back({"n/r/gpu-" + std::to_string(i), since});
  const auto cut = recovery_message(many);
  CHECK(cut.size() <= kLongestCondition);
  const auto words = read_recovery(cut);
  CHECK(words.cut);
  CHECK(cut.ends_with("and " + std::to_string(many.size() - words.devices.size()) + " more devices"));
}

TEST_CASE("Hostile words of a driver stay on one line and short") {
  const auto message = condition_message({{"d", {}, "p", std::string(5000, 'x') + "\x01\n", "eviction"}});
  CHECK(message.size() < 500);
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace dhc
