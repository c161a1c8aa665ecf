#include "app/verdict_changes.h"

#include <vector>

#include <doctest/doctest.h>

namespace {
dhc::Verdict verdict(const char* name, dhc::Reason reason, const char* message = "") {
  dhc::Verdict made;
  made.subject = {.kind = "Pod", .ns = "a", .name = name, .uid = "u"};
  made.reason = reason;
  made.message = message;
  return made;
}
}  // namespace

TEST_CASE("a verdict is news once, and again only after it ended") {
  const std::vector before = {verdict("a", dhc::Reason::Evicting), verdict("b", dhc::Reason::RateLimited)};
  const std::vector after = {verdict("a", dhc::Reason::Evicted), verdict("b", dhc::Reason::RateLimited)};
  const auto changes = dhc::changes_between(before, after);
  REQUIRE(changes.begun.size() == 1);
  CHECK(changes.begun[0] == after[0]);
  REQUIRE(changes.ended.size() == 1);
  CHECK(changes.ended[0] == before[0]);
}

TEST_CASE("another sentence about the same verdict is no news") {
  const std::vector before = {verdict("a", dhc::Reason::RateLimited, "next in 6 s")};
  const std::vector after = {verdict("a", dhc::Reason::RateLimited, "next in 5 s")};
  const auto changes = dhc::changes_between(before, after);
  CHECK(changes.begun.empty());
  CHECK(changes.ended.empty());
}
