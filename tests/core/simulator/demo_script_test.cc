#include "simulator/script/demo_script.h"

#include <doctest/doctest.h>

#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;

namespace {

/// A minute of the demo: what broke and what was repaired, in words.
std::vector<std::string> minute(std::uint64_t seed) {
  Lab lab(seed);
  DemoScript script(seed);
  script.set_up(lab.cluster, lab.now);
  std::vector<std::string> story;
  for (int second = 0; second < 60; ++second) {
    for (const auto& event : script.advance(lab.cluster, lab.now)) {
      const bool broke = event.what == DemoEvent::What::Broke;
      if (broke) REQUIRE(!event.holders.empty());
      story.push_back((broke ? "broke " : "repaired ") + event.node + " " + event.kind + " " + event.device);
    }
    lab.run_for(1s);
  }
  return story;
}

}  // namespace

TEST_CASE("the demo breaks a device in use every seven seconds, of both kinds, and repairs it later") {
  const auto story = minute(1);
  int plugin = 0;
  int dra = 0;
  int repaired = 0;
  for (const auto& line : story) {
    plugin += line.starts_with("broke") && line.find("example.com/gpu") != std::string::npos ? 1 : 0;
    dra += line.starts_with("broke") && line.find("gpu.example.com") != std::string::npos ? 1 : 0;
    repaired += line.starts_with("repaired") ? 1 : 0;
  }
  CHECK(plugin == 4);
  CHECK(dra >= 3);
  CHECK(repaired >= 3);
}

TEST_CASE("the demo is the same for the same seed and another for another") {
  CHECK(minute(7) == minute(7));
  CHECK(minute(7) != minute(8));
}
