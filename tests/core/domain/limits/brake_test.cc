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
  std::optional<std::uint64_t> saved;

  EightDevices() {
    allow(8);
    report(8, Millis(0));
  }
  /// So many of them can be allocated.
  void allow(std::int64_t devices) {
    k8s::Node node;
    node.meta.name = "node-a";
    node.ready = true;
    node.capacity = {{"example.com/gpu", 8}};
    node.allocatable = {{"example.com/gpu", devices}};
    world.apply(k8s::Upsert{node}, brake_time(Millis(0)));
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
                   .saved_revision = saved,
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

TEST_CASE("Bad devices that are one physical card count once") {
  for (const bool is_one_card : {true, false}) {
    CAPTURE(is_one_card);
    EightDevices shared;
    k8s::Pod pod;
    pod.meta.name = pod.meta.uid = "slices";
    pod.meta.ns = "default";
    pod.node_name = "node-a";
    pod.phase = k8s::PodPhase::Running;
    pod.requests = {{"example.com/gpu", 3}};
    k8s::AllocatedResource held{.name = "example.com/gpu", .devices = {}};
    for (int i = 0; i < 3; ++i) {
      held.devices.push_back({fmt::format("GPU-{}::{}", is_one_card ? 0 : i, i), k8s::Health::Unhealthy, ""});
    }
    pod.allocated = {held};
    shared.world.apply(k8s::Upsert{pod}, brake_time(Millis(0)));
    shared.world.refresh(brake_time(Millis(0)));
    for (const auto& device : held.devices) {
      auto& bad = shared.affected.emplace_back();
      bad.key = DeviceKey::plugin("node-a", "example.com/gpu", device.resource_id);
      bad.record = shared.world.pod("slices");
      bad.since = moment_of(brake_time(Millis(0)));
    }
    shared.observe(Millis(0));
    CHECK(shared.brake.engaged().empty() == is_one_card);
  }
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

namespace {

/// The trial of the pod on the first device, as the eviction's plan chooses it.
BrakeTrial trial_of_first(const EightDevices& one, Millis at) {
  BrakeTrial trial;
  trial.key = EightDevices::key(0);
  trial.ns = "default";
  trial.pod = trial.pod_uid = "0";
  trial.owner_uid = "owner";
  trial.chosen = moment_of(brake_time(at));
  trial.revision = one.brake.revision() + 1;
  return trial;
}

bool may_try_first(const EightDevices& one, Millis at) {
  return one.brake.may_try(EightDevices::key(0), "node-a", "0", one.policy.limits, brake_time(at));
}

const EngagedBrake& node_brake(const EightDevices& one) {
  return one.brake.engaged().at({.scope = "example.com/gpu", .node = "node-a"});
}

}  // namespace

TEST_CASE("An engaged brake is half-open trialAfter after it engaged, and not a millisecond earlier") {
  EightDevices one;
  CHECK(!may_try_first(one, hours(1)));
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  CHECK(!may_try_first(one, minutes(30) - Millis(1)));
  CHECK(may_try_first(one, minutes(30)));
  CHECK(one.brake.count_half_open(one.policy.limits, brake_time(minutes(30) - Millis(1))) == 0);
  CHECK(one.brake.count_half_open(one.policy.limits, brake_time(minutes(30))) == 2);  // the node's and the cluster's
  // Nobody is tried where the brake is about to be released.
  CHECK(one.is_engaged_with(2, minutes(31)));
  CHECK(!may_try_first(one, minutes(31)));
}

TEST_CASE("A brake that has been half-open for long hides no later change of another") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  const auto next_change = [&](Millis at) { return one.brake.next_change_at(one.policy.limits, brake_time(at)); };
  CHECK(next_change(Millis(0)) == brake_time(minutes(30)).mono);
  CHECK(next_change(minutes(30)) == std::nullopt);
  // The trial is the node's alone: the cluster's brake stays as it is.
  auto engaged = one.brake.engaged();
  engaged.at({.scope = "example.com/gpu", .node = "node-a"}).trial = trial_of_first(one, minutes(30));
  one.brake.load({.engaged = engaged, .unheld = {}}, brake_time(Millis(0)));
  CHECK(next_change(minutes(30)) == brake_time(minutes(40)).mono);
}

TEST_CASE("A half-open brake lets one pod go, once its trial is written, and holds every other one") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  const auto trial = trial_of_first(one, minutes(30));
  one.brake.begin_trial(trial, "node-a");
  CHECK(!may_try_first(one, minutes(30)));
  one.saved = trial.revision - 1;
  one.is_engaged_with(3, minutes(30));
  CHECK(one.brake.holding(trial.key, "node-a", "0") != nullptr);
  one.saved = trial.revision;
  one.is_engaged_with(3, minutes(30));
  CHECK(one.brake.holding(trial.key, "node-a", "0") == nullptr);
  CHECK(one.brake.holding(trial.key, "node-a", "1") != nullptr);
  CHECK(one.brake.holding(EightDevices::key(1), "node-a") != nullptr);
}

TEST_CASE("A trial whose pod does not go within ten minutes ends, costs no wait, and tries another pod") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  one.brake.begin_trial(trial_of_first(one, minutes(30)), "node-a");
  one.is_engaged_with(3, minutes(40) - Millis(1));
  CHECK(node_brake(one).trial);
  one.is_engaged_with(3, minutes(40));
  CHECK(!node_brake(one).trial);
  CHECK(node_brake(one).trials == 0);
  CHECK(!may_try_first(one, minutes(40)));
  CHECK(one.brake.may_try(EightDevices::key(1), "node-a", "1", one.policy.limits, brake_time(minutes(40))));
  one.is_engaged_with(3, minutes(100));
  CHECK(may_try_first(one, minutes(100)));
}

TEST_CASE("A trial that went and proved nothing doubles the wait for the next one, which counts from its end") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  one.brake.begin_trial(trial_of_first(one, minutes(30)), "node-a");
  one.world.apply(k8s::Remove{.kind = k8s::Kind::Pod, .ns = "default", .name = "0", .uid = "0"},
                  brake_time(minutes(31)));
  one.affected.erase(one.affected.begin());
  one.observe(minutes(31));
  CHECK(node_brake(one).trials == 1);
  one.is_engaged_with(3, minutes(61) - Millis(1));
  CHECK(node_brake(one).trial);
  one.is_engaged_with(3, minutes(61));
  CHECK(!node_brake(one).trial);
  CHECK(next_trial_at(node_brake(one), one.policy.limits) == brake_time(minutes(61) + hours(1)).mono);
}

TEST_CASE(
    "A process that begins anew knows the brakes that were written, and counts their wait from what was written") {
  EightDevices one;
  REQUIRE(one.is_engaged_with(3, Millis(0)));
  EightDevices next;
  next.brake.load({.engaged = one.brake.engaged(), .unheld = {}}, brake_time(Millis(0)));
  CHECK(next.brake.holding(EightDevices::key(7), "node-a") != nullptr);
  CHECK(next.is_engaged_with(3, hours(1)));
  CHECK(may_try_first(next, hours(1)));
  EightDevices stranger;
  CHECK(!stranger.is_engaged_with(2, hours(1)));
  // What nobody holds speaks by no pod: it counts by what was written of it.
  EightDevices unheld;
  unheld.allow(7);
  BadDevice gone;
  gone.node = "node-a";
  gone.card = "gone";
  gone.unheld_since = brake_time(Millis(0)).mono;
  unheld.brake.load(
      {.engaged = one.brake.engaged(), .unheld = {{DeviceKey::plugin("node-a", "example.com/gpu", "gone"), gone}}},
      brake_time(Millis(0)));
  CHECK(unheld.is_engaged_with(2, minutes(10)));
  CHECK(unheld.is_engaged_with(2, minutes(10) + kReleaseSettle));
  CHECK(node_brake(unheld).devices == 3);
}

}  // namespace dhc
