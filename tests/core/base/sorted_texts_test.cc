#include "base/sorted_texts.h"

#include <rapidcheck.h>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace dhc {
namespace {

TEST_CASE("sorted texts are a set") {
  CHECK(rc::check([] {
    SortedTexts texts;
    std::set<std::string> set;
    for (int step = 0; step < 60; ++step) {
      const auto text = "a text that stands apart, " + std::to_string(*rc::gen::inRange(0, 6));
      if (*rc::gen::arbitrary<bool>()) {
        RC_ASSERT(texts.insert(text) == set.insert(text).second);
      } else {
        RC_ASSERT(texts.erase(text) == set.erase(text));
      }
      RC_ASSERT(texts.contains(text) == set.contains(text));
      RC_ASSERT(texts.size() == set.size());
      RC_ASSERT(texts.empty() == set.empty());
      RC_ASSERT(std::vector<std::string>(texts) == std::vector<std::string>(set.begin(), set.end()));
    }
  }));
}

}  // namespace
}  // namespace dhc
