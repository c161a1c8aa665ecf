// A bad device that a pod holds and no policy matches is said, with what would have to be otherwise.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// Two policies with other words than the driver's: the first is for other drivers, the second for pods with a label.
struct UnmatchedWorld : TaintWorld {
  UnmatchedWorld() {
    DevicePolicy near = policy();
    near.name = "training";
    near.match.pods.requirements = {{.key = "team", .op = LabelSelector::Operator::In, .values = {"ml"}}};
    policy().match.drivers = {"gpu.other.com"};
    whole_policy().policies.push_back(near);
    send_policy();
    device = start_one();
    set_health(device, "Unhealthy", "critical XID 79 reported by NVML");
    run_for(30min);
  }
  [[nodiscard]] const Verdict* unmatched() const {
    const auto found = std::ranges::find(verdicts(), Reason::NoPolicy, &Verdict::reason);
    return found == verdicts().end() ? nullptr : &*found;
  }

  std::string device;
};

}  // namespace

TEST_CASE("a bad device that no policy matches is told with the nearest one and its selector, until that matches") {
  UnmatchedWorld world;
  for (int process = 0; process < 2; ++process) {
    REQUIRE(world.unmatched() != nullptr);
    CHECK(world.unmatched()->subject.name == "s-0");
    CHECK(world.unmatched()->device == world.device);
    CHECK(world.unmatched()->policy == "training");
    CHECK(world.unmatched()->message.contains("its podSelector asks for team in (ml)"));
    world.restart_controller();
    world.run_for(30min);
  }
  CHECK(world.write_count() == 0);
  REQUIRE(
      world.cluster.kubectl_patch(Res::Pods, "default", "s-0", {{"metadata", {{"labels", {{"team", "ml"}}}}}}).status ==
      200);
  world.run_for(2min);
  CHECK(world.unmatched() == nullptr);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}

TEST_CASE("a bad device that no policy matches is told no more when it is well or a policy takes it out") {
  UnmatchedWorld world;
  REQUIRE(world.unmatched() != nullptr);
  SUBCASE("it is well again") { world.set_health(world.device, "Healthy"); }
  SUBCASE("a policy with mode off") {
    DevicePolicy off = world.policy();
    off.name = "not-ours";
    off.mode = Mode::Off;
    off.match = {};
    off.match.drivers = {TaintWorld::kDriver};
    world.whole_policy().policies.push_back(off);
    world.send_policy();
  }
  world.run_for(1min);
  CHECK(world.unmatched() == nullptr);
  CHECK(world.write_count() == 0);
}
