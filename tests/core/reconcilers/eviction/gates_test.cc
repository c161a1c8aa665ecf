#include "reconcilers/eviction/gates.h"

#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc::test {

TEST_CASE("the page about verdicts shows the gates of an eviction in the order in which they are asked") {
  const auto gates = eviction::Gates::texts();
  std::ifstream file("docs/verdicts.md");
  std::size_t shown = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| ") || line.size() < 3 || line[2] < '1' || line[2] > '9') continue;
    std::erase(line, '`');
    CAPTURE(line);
    REQUIRE(shown < gates.size());
    const auto& gate = gates.at(shown++);
    CHECK(line.starts_with(fmt::format("| {}. {} | {} | ", shown, gate.name, gate.passes)));
  }
  CHECK(shown == gates.size());
}

}  // namespace dhc::test
