#include "domain/limits/brake.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

Now brake_time(Millis since) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + since, .wall = noon + since};
}

/// Eight devices that eight pods of one node hold.
struct EightDevices {
  World world;
  Policy policy;
  std::vector<AffectedPod> affected;
  Brake brake;

  EightDevices() {
    k8s::Node node;
    node.meta.name = "node-a";
    node.ready = true;
    node.capacity = {{"example.com/gpu", 8}};
    node.allocatable = node.capacity;
    world.apply(k8s::Upsert{node}, brake_time(Millis(0)));
    report(8, Millis(0));
  }
  /// The first so many of the devices are bad, the others well.
  void report(int bad, Millis at) {
    for (int i = 0; i < 8; ++i) {
      k8s::Pod pod;
      pod.meta.ns = "default";
      pod.meta.name = std::to_string(i);
      pod.meta.uid = pod.meta.name;
      pod.node_name = "node-a";
      pod.phase = k8s::PodPhase::Running;
      pod.requests = {{"example.com/gpu", 1}};
      pod.allocated = {
          {"example.com/gpu", {{pod.meta.name, i < bad ? k8s::Health::Unhealthy : k8s::Health::Healthy, ""}}}};
      world.apply(k8s::Upsert{pod}, brake_time(at));
    }
    world.refresh(brake_time(at));
  }
  [[nodiscard]] static DeviceKey key(int device) {
    return DeviceKey::plugin("node-a", "example.com/gpu", std::to_string(device));
  }
  /// A turn in which policies mean the first so many of the devices.
  bool is_engaged_with(int bad, Millis at) {
    report(bad, at);
    affected.clear();
    for (int i = 0; i < bad; ++i) {
      AffectedPod one;
      one.key = key(i);
      one.record = world.pod(std::to_string(i));
      one.since = moment_of(brake_time(at));
      affected.push_back(one);
    }
    observe(at);
    return brake.holding(key(7), "node-a") != nullptr;
  }
  void observe(Millis at) {
    brake.observe({.world = world,
                   .policy = policy,
                   .affected_pods = affected,
                   .records = {},
                   .losses = {},
                   .rejecting_nodes = {},
                   .saved_revision = {},
                   .now = brake_time(at)});
  }
};

}  // namespace

TEST_CASE("The number that is always allowed engages no brake, and one more does") {
  CHECK(!EightDevices().is_engaged_with(2, Millis(0)));
  CHECK(EightDevices().is_engaged_with(3, Millis(0)));
  EightDevices share;
  share.policy.limits.brake_percent = 50;
  CHECK(!share.is_engaged_with(4, Millis(0)));
  CHECK(share.is_engaged_with(5, Millis(0)));
}

TEST_CASE("Devices that go bad within brake.within count together, and not a millisecond later") {
  for (const auto& [later, engaged] : {std::pair(minutes(5) - Millis(1), true), std::pair(Millis(minutes(5)), false)}) {
    EightDevices one;
    CHECK(!one.is_engaged_with(2, Millis(0)));
    CHECK(one.is_engaged_with(3, later) == engaged);
  }
}

TEST_CASE("An engaged brake is released once half a minute has passed without a relapse, and not before") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  CHECK(one.is_engaged_with(3, hours(24)));
  CHECK(one.is_engaged_with(2, hours(25)));
  CHECK(one.is_engaged_with(2, hours(25) + kReleaseSettle - Millis(1)));
  CHECK(one.is_engaged_with(3, hours(25) + kReleaseSettle));
  CHECK(one.is_engaged_with(2, hours(26)));
  CHECK(!one.is_engaged_with(2, hours(26) + kReleaseSettle));
}

TEST_CASE("Of a plugin that names its devices anew with each start no more are remembered than a node can have") {
  EightDevices one;
  for (int start = 0; start < 100; ++start) {
    const auto at = minutes(start);
    k8s::Pod pod;
    pod.meta.name = pod.meta.uid = "0";
    pod.meta.ns = "default";
    pod.node_name = "node-a";
    pod.phase = k8s::PodPhase::Running;
    pod.requests = {{"example.com/gpu", 4}};
    k8s::AllocatedResource held{.name = "example.com/gpu", .devices = {}};
    for (int i = 0; i < 4; ++i) held.devices.push_back({fmt::format("{}-{}", start, i), k8s::Health::Unhealthy, ""});
    pod.allocated = {held};
    one.world.apply(k8s::Upsert{pod}, brake_time(at));
    one.world.refresh(brake_time(at));
    one.affected.clear();
    for (const auto& device : held.devices) {
      AffectedPod bad;
      bad.key = DeviceKey::plugin("node-a", "example.com/gpu", device.resource_id);
      bad.record = one.world.pod("0");
      bad.since = moment_of(brake_time(at));
      one.affected.push_back(bad);
    }
    one.observe(at);
  }
  CHECK(one.brake.bad().size() == 4 + 128);
}

TEST_CASE("The wait for a trial doubles with each one before it, up to a day") {
  const Limits limits;
  EngagedBrake brake;
  brake.waits_from = moment_of(brake_time(Millis(0)));
  for (const auto& [trials, wait] : {std::pair<std::int64_t, Millis>(0, minutes(30)),
                                     {1, hours(1)},
                                     {5, hours(16)},
                                     {6, hours(24)},
                                     {7, hours(24)},
                                     {INT64_MAX, hours(24)}}) {
    brake.trials = trials;
    CHECK(next_trial_at(brake, limits) == brake_time(wait).mono);
  }
}

}  // namespace dhc
