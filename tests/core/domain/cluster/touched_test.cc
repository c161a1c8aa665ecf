#include "domain/cluster/touched.h"

#include <string>

#include <doctest/doctest.h>

namespace dhc::test {

TEST_CASE("So much that is touched is noted one by one, and with one more it is everything") {
  Touched touched;
  for (std::size_t i = 0; i < Touched::kMost; ++i) touched.pod("uid-" + std::to_string(i));
  touched.pod("uid-0");
  CHECK_FALSE(touched.all());
  CHECK(touched.pods().size() == Touched::kMost);
  touched.pod("one more");
  CHECK(touched.all());
  CHECK(touched.pods().empty());
  touched.device(DeviceKey::dra("gpu.example.com", "node-a", "gpu-0"));
  CHECK(touched.devices().empty());
}

TEST_CASE("What is touched is added up, and everything stays everything") {
  Touched touched;
  touched.node("node-a");
  Touched more;
  more.node("node-b");
  more.owner("team/uid-1");
  touched.add(more);
  CHECK(touched.nodes().size() == 2);
  CHECK(touched.owners().contains("team/uid-1"));
  more.everything();
  touched.add(more);
  CHECK(touched.all());
  CHECK(touched.nodes().empty());
  touched.add({});
  CHECK(touched.all());
}

}  // namespace dhc::test
