#include "tests/support/core/fixtures.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include <doctest/doctest.h>

namespace dhc::test {

std::string read_fixture(std::string_view path) {
  const auto file = "tests/fixtures/" + std::string(path);
  std::ifstream in(file, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), "cannot read " << file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_fixture_lines(std::string_view path) {
  std::istringstream in(read_fixture(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace dhc::test
