#include <fstream>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "domain/contract/reasons.h"

TEST_CASE("the page about verdicts explains every reason, each once, and no other") {
  std::ifstream file("docs/verdicts.md");
  std::set<std::string> explained;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    const auto word = line.substr(3, line.find('`', 3) - 3);
    CAPTURE(word);
    CHECK(explained.insert(word).second);
  }
  std::set<std::string> known;
  for (const auto reason : dhc::kAllReasons) known.emplace(dhc::to_string(reason));
  CHECK(explained == known);
}
