#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dhc::test {

/// A file under tests/fixtures, whole; the test fails if it cannot be read.
[[nodiscard]] std::string read_fixture(std::string_view path);

/// Its lines, without empty ones.
[[nodiscard]] std::vector<std::string> read_fixture_lines(std::string_view path);

}  // namespace dhc::test
