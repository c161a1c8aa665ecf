#include "domain/cluster/ending_order.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace dhc;

namespace {
MonoTime at(int second) { return MonoTime(Seconds(second)); }
}  // namespace

TEST_CASE("beyond the bound the oldest goes of the namespace that has the most, whoever comes last") {
  EndingOrder order(4);
  CHECK_FALSE(order.add("quiet", at(1), "q-1"));
  for (int i = 2; i < 5; ++i) CHECK_FALSE(order.add("loud", at(i), "l-" + std::to_string(i)));
  CHECK(order.add("loud", at(5), "l-5") == "l-2");
  CHECK(order.add("quiet", at(6), "q-6") == "l-3");
  CHECK(order.size() == 4);
  CHECK(order.take_until(at(4)) == std::vector<std::string>{"l-4", "q-1"});
  CHECK(order.size() == 2);
  CHECK(order.take_until(at(3)).empty());
}

TEST_CASE("what is added twice counts once") {
  EndingOrder order(2);
  CHECK_FALSE(order.add("a", at(1), "x"));
  CHECK_FALSE(order.add("a", at(1), "x"));
  CHECK_FALSE(order.add("b", at(1), "y"));
  CHECK(order.size() == 2);
}
