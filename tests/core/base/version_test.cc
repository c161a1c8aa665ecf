#include "base/version.h"

#include <algorithm>

#include <doctest/doctest.h>

TEST_CASE("the version is three numbers with dots between them") {
  const auto text = dhc::version();
  CHECK(std::ranges::count(text, '.') == 2);
  CHECK(std::ranges::all_of(text, [](char c) { return c == '.' || (c >= '0' && c <= '9'); }));
}
