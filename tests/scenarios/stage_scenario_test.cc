// A policy that is rolled out in stages, and parts of the cluster that are kept out of it.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;

namespace {

/// Fifty pods, each on a device of its own.
std::vector<std::string> start_fifty(TaintWorld& world) {
  for (int i = 0; i < 13; ++i) world.cluster.add_node({fmt::format("big-{}", i), {}, {{TaintWorld::kDriver, 4}}, {}});
  world.cluster.create_deployment("default", "d", 50, TaintWorld::dra_pod());
  world.run_for(30s);
  std::vector<std::string> devices;
  for (const auto& pod : world.live("d-")) devices.push_back(world.device_of(pod));
  return devices;
}

std::set<std::string> tainted_of(const TaintWorld& world, const std::vector<std::string>& devices) {
  std::set<std::string> tainted;
  std::ranges::copy_if(devices, std::inserter(tainted, tainted.end()),
                       [&](const std::string& device) { return world.effect_of(device) == "NoSchedule"; });
  return tainted;
}

}  // namespace

TEST_CASE("a share that grows over faults taints more devices and never others, whichever process decides") {
  TaintWorld world;
  world.whole_policy().limits.brake_at_least = 1000;
  world.policy().evict.reset();
  world.policy().enforce_on = EnforceOn{.namespaces = {}, .nodes = {}, .percent = 0};
  world.send_policy();
  const auto devices = start_fifty(world);
  REQUIRE(devices.size() == 50);
  for (const auto& device : devices) world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(5min);
  CHECK(world.rule_count() == 0);
  std::set<std::string> before;
  for (const int percent : {20, 50, 80}) {
    CAPTURE(percent);
    world.policy().enforce_on->percent = percent;
    world.send_policy();
    world.run_for(2min);
    const auto now = tainted_of(world, devices);
    CHECK(std::ranges::includes(now, before));
    CHECK(now.size() > before.size());
    CHECK(now.size() < 50);
    world.restart_controller();
    world.run_for(2min);
    CHECK(tainted_of(world, devices) == now);
    before = now;
  }
  // A lower share takes no taint away, and each goes when its device has recovered.
  world.policy().enforce_on->percent = 10;
  world.send_policy();
  world.run_for(10min);
  CHECK(tainted_of(world, devices) == before);
  for (const auto& device : devices) world.set_health(device, "Healthy");
  world.run_for(15min);
  CHECK(world.rule_count() == 0);
  world.policy().enforce_on.reset();
  for (const auto& device : devices) world.set_health(device, "Unhealthy", "Xid 79");
  world.send_policy();
  world.run_for(5min);
  CHECK(world.rule_count() == 50);
}
