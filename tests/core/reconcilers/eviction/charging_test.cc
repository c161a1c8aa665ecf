#include "reconcilers/eviction/charging.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/incidents/state_caps.h"

namespace dhc::eviction {

namespace {

using std::chrono::minutes;

constexpr WallTime kStart{Seconds(1'800'000'000)};

/// A pod on a bad device, and charges of others that fill the room of the state.
struct FullBook {
  World world;
  Policy policy;
  RequestTracker requests;
  Brake brake;
  RejectingNodes rejecting;
  IncidentStore incidents;
  NodeCases cases;
  ComingPods coming;
  AskedTaints asked;
  Now now{.mono = MonoTime(minutes(60)), .wall = kStart};
  Caps caps{
      {.world = world, .policy = policy, .book = incidents.caps(), .requests = requests, .asked = asked, .now = now}};
  PodRecord record;
  HeldDevice held;
  std::vector<AffectedPod> affected;

  /// The charges' age in minutes, and whether their evictions have counted.
  FullBook(int age, bool counted) {
    CapBook book;
    EvictionCharge charge{.pod_uid = {},
                          .key = DeviceKey::plugin("node-b", "example.com/gpu", "GPU-0"),
                          .node = std::string(1000, 'n'),
                          .at = kStart - minutes(age)};
    charge.counted = counted;
    CapsSize size(book);
    for (int i = 0;; ++i) {
      charge.pod_uid = fmt::format("other-{}", i);
      size.add(charge);
      if (size.bytes() > kCapsLimit) break;
      book.charge(charge);
    }
    incidents.load({}, {}, book);
    record.pod.meta.ns = "default";
    record.pod.meta.name = "train-1";
    record.pod.meta.uid = "uid-train-1";
    record.pod.node_name = std::string(1000, 'n');
    held.key = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1");
    auto& one = affected.emplace_back();
    one.key = held.key;
    one.record = &record;
    one.held_device = &held;
  }
  [[nodiscard]] PlanInput input() const {
    return {.world = world,
            .policy = policy,
            .requests = requests,
            .brake = brake,
            .rejecting_nodes = rejecting,
            .affected_pods = affected,
            .incidents = incidents,
            .node_cases = cases,
            .coming = coming,
            .caps = caps,
            .saved_revision = {},
            .now = now};
  }
};

}  // namespace

TEST_CASE("Charges that give way take no room from the next eviction, and those that have counted do") {
  for (const bool counted : {false, true}) {
    CAPTURE(counted);
    const FullBook book(30, counted);
    const auto input = book.input();
    Charging charging(input);
    const auto hold = charging.record(Unit{.affected_pods = {&book.affected.front()}});
    CHECK(hold.has_value() == counted);
    CHECK(charging.charges().size() == (counted ? 0 : 1));
    if (hold) CHECK(hold->reason == Reason::CapReached);
  }
}

TEST_CASE("A charge of this minute does not give way yet: its eviction may be sent now") {
  const FullBook book(0, false);
  const auto input = book.input();
  Charging charging(input);
  const auto hold = charging.record(Unit{.affected_pods = {&book.affected.front()}});
  REQUIRE(hold);
  CHECK(hold->message ==
        "ConfigMap device-health-incidents has no room left for what is out of service on our account");
}

}  // namespace dhc::eviction
