// What bad devices cost, counted over whole stories on the simulated cluster.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;

namespace {

Millis lost(TaintWorld& world, LossCause cause) {
  return world.controller().losses().lost.at(static_cast<std::size_t>(cause));
}

Millis lost_in_all(TaintWorld& world) {
  Millis sum{0};
  for (const auto cause : kLossCauses) sum += lost(world, cause);
  return sum;
}

std::int64_t lost_now(TaintWorld& world) {
  std::int64_t sum = 0;
  for (const auto count : world.controller().losses().lost_now) sum += count;
  return sum;
}

/// At this moment: what is lost is summed then.
void plan(TaintWorld& world) {
  world.send_policy();
  world.run_for(0ms);
}

}  // namespace

TEST_CASE("a fault that stands and recovers costs exactly the time between the two reports of its kubelet") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_for(40min);
  REQUIRE(world.effect_of(device) == "NoSchedule");
  world.set_health(device, "Healthy");
  world.run_for(1h);
  REQUIRE(world.rule_count() == 0);
  CHECK(lost(world, LossCause::UnhealthyHeld) == 40min);
  CHECK(lost_in_all(world) == 40min);
}

TEST_CASE("two faults at a time cost twice the time that both stand") {
  TaintWorld world;
  const auto first = world.start_held();
  world.cluster.create_stateful_set("default", "t", 1, TaintWorld::dra_pod());
  world.run_for(10min);
  const auto second = world.device_of("t-0");
  world.set_health(second, "Unhealthy", "Xid 79");
  world.run_for(20min);
  world.set_health(first, "Healthy");
  world.run_for(5min);
  world.set_health(second, "Healthy");
  world.run_for(1h);
  CHECK(lost_in_all(world) == 30min + 25min);
}

TEST_CASE("a process that ends counts to its last plan, and the next from its first, and nothing is counted twice") {
  TaintWorld world;
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  while (lost_now(world) == 0) world.run_for(100ms);
  const auto seen = world.now.mono;
  world.run_for(30min);
  REQUIRE(world.effect_of(device) == "NoSchedule");
  plan(world);
  const auto before = lost_in_all(world);
  const auto ended = world.now.mono;
  CHECK(before >= ended - seen);
  CHECK(before <= ended - seen + 100ms);
  CHECK(lost(world, LossCause::KeptOff) > lost(world, LossCause::UnhealthyHeld));
  world.restart_controller();
  while (lost_now(world) == 0) world.run_for(100ms);
  const auto again = world.now.mono;
  CHECK(again - ended < 10s);
  world.run_for(30min);
  plan(world);
  const auto after = lost_in_all(world);
  CHECK(after >= world.now.mono - again);
  CHECK(after <= world.now.mono - again + 100ms);
  CHECK(lost(world, LossCause::KeptOff) == after);
}

TEST_CASE("a pod on a bad device is measured from the report to its running replacement") {
  TaintWorld world;
  const auto device = world.start_one();
  (void)world.controller().take_measured();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10min);
  REQUIRE(world.evictions().size() == 1);
  REQUIRE(world.device_of("s-0") != device);
  const auto all = world.controller().take_measured();
  const auto find = [&](Span span) {
    REQUIRE(std::ranges::count(all, span, &Measured::span) == 1);
    return std::ranges::find(all, span, &Measured::span)->took;
  };
  CHECK(find(Span::ToNotice) >= 60s);
  CHECK(find(Span::ToTaint) >= 60s);
  CHECK(find(Span::ToEviction) >= find(Span::ToTaint));
  CHECK(find(Span::ToReplacement) >= find(Span::ToEviction));
  CHECK(find(Span::ToReplacement) < 5min);
  CHECK(all.size() == 4);
}
