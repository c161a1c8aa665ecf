#include "base/nearest_word.h"

#include <array>

#include <doctest/doctest.h>

TEST_CASE("a word with a letter changed, missing, too many or swapped with the next is found, and another is not") {
  constexpr std::array<std::string_view, 4> kKnown = {"match", "message", "taint", "evict"};
  CHECK(dhc::nearest_word("macth", kKnown) == "match");
  CHECK(dhc::nearest_word("mtach", kKnown) == "match");
  CHECK(dhc::nearest_word("amtch", kKnown) == "match");
  CHECK(dhc::nearest_word("matc", kKnown) == "match");
  CHECK(dhc::nearest_word("matchh", kKnown) == "match");
  CHECK(dhc::nearest_word("TIANT", kKnown) == "taint");
  CHECK(dhc::nearest_word("hctam", kKnown).empty());
  CHECK(dhc::nearest_word("x", kKnown).empty());
}
