// What an engaged brake knows after a restart of the devices that nobody holds.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/incidents/brake_state.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// A hundred nodes of one device, each held by a pod.
struct SingleStage : Stage {
  SingleStage() {
    limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
    limits().brake_trial_after = hours(720);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    whole_policy().own_namespace = "dhc";
    send_policy();
    for (int n = 0; n < 100; ++n) {
      node(fmt::format("node-{}", n), 1);
      pod({.name = fmt::format("p-{}", n),
           .node = fmt::format("node-{}", n),
           .owner = fmt::format("ReplicaSet/rs-{}", n),
           .device = "gpu-0"});
    }
    settle();
  }

  void break_node(int n) {
    report(fmt::format("p-{}", n), Health::Unhealthy, "Xid 79");
    node(fmt::format("node-{}", n), 1, 0);
  }
};

constexpr std::string_view kGpus = "example.com/gpu";

/// Of what some of them the driver says something of its own.
struct Saying {
  std::string words;
  int first = 0;
  int count = 0;
};

/// A brake of the cluster with so many bad devices that nobody holds, eight a node; all nodes stand, and none of these
/// devices can be allocated.
struct Emptied {
  World world;
  Policy policy;
  Brake brake;
  Now now{.mono = MonoTime(hours(100)), .wall = WallTime(hours(400'000))};

  explicit Emptied(int devices, const Saying& saying = {}) {
    BrakeMemory memory;
    policy.limits.brake_by_message.at_least = 3;
    if (saying.count > 0)
      memory.engaged[{.scope = std::string(kGpus), .node = {}, .words = saying.words}].since = moment_of(now);
    memory.engaged[{.scope = std::string(kGpus), .node = {}}].since = moment_of(now);
    for (int i = 0; i < devices; ++i) {
      const auto node = fmt::format("node-{}", i / 8);
      memory.unheld[DeviceKey::plugin(node, std::string(kGpus), fmt::format("gpu-{}", i % 8))] = {
          .node = node,
          .card = fmt::format("gpu-{}", i % 8),
          .words = i >= saying.first && i < saying.first + saying.count ? saying.words : std::string(),
          .onset = moment_of(now),
          .began = now.wall,
          .unheld_since = now.mono};
    }
    for (int n = 0; n * 8 < 2 * devices; ++n) show_node(n, 0);
    brake.load(std::move(memory), now);
    observe();
  }

  void show_node(int number, std::int64_t allocatable) {
    k8s::Node node;
    node.meta.name = fmt::format("node-{}", number);
    node.ready = true;
    node.capacity = {{std::string(kGpus), 8}};
    node.allocatable = {{std::string(kGpus), allocatable}};
    world.apply(k8s::Upsert{node}, now);
    world.refresh(now);
  }

  void observe() {
    const std::vector<AffectedPod> none;
    brake.observe({.world = world,
                   .policy = policy,
                   .affected_pods = none,
                   .records = {},
                   .losses = {},
                   .rejecting_nodes = {},
                   .saved_revision = {},
                   .now = now});
  }

  [[nodiscard]] std::int64_t counted() const {
    const auto found = brake.engaged().find({.scope = std::string(kGpus), .node = {}});
    return found == brake.engaged().end() ? 0 : found->second.devices;
  }

  /// By another process.
  void restart(std::size_t limit) {
    const auto text = brake_state_text(brake, limit);
    CHECK(text.size() <= limit);
    brake = {};
    brake.load(parse_brake_state(text, now), now);
    observe();
  }
};

}  // namespace

TEST_CASE("The cluster's brake holds over a restart also where the pods of its bad devices have ended by themselves") {
  SingleStage stage;
  for (int n = 0; n < 40; ++n) stage.break_node(n);
  stage.run_for(minutes(3), Seconds(10));
  REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
  for (int n = 0; n < 38; ++n) stage.remove_pod(fmt::format("p-{}", n));
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
  for (int i = 0; i < 2; ++i) {
    stage.restart();
    CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
    REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
    CHECK(stage.verdict("example.com/gpu", Reason::BrakeEngaged)->message.contains("40 of 100 devices"));
  }
}

TEST_CASE("Bad devices for whose names the state has no room are kept as a number, and go the way of the others") {
  Emptied fleet(800);
  REQUIRE(fleet.counted() == 800);
  for (int i = 0; i < 3; ++i) {
    fleet.restart(20'000);
    CHECK(fleet.counted() == 800);
  }
  const auto named = fleet.brake.bad().size();
  CHECK(named > 50);
  CHECK(named < 800);
  // Half of the nodes are repaired.
  for (int n = 0; n < 100; n += 2) fleet.show_node(n, 8);
  fleet.observe();
  CHECK(fleet.counted() > 350);
  CHECK(fleet.counted() < 450);
  for (int n = 0; n < 100; ++n) fleet.show_node(n, 8);
  fleet.observe();
  CHECK(fleet.counted() == 0);
}

TEST_CASE("A brake of so few devices that none of them has a name holds over a restart all the same") {
  const std::string words = "GPU is lost";
  for (int first = 0; first < 800; first += 40) {
    Emptied fleet(800, {.words = words, .first = first, .count = 5});
    const BrakeScope narrow{.scope = std::string(kGpus), .node = {}, .words = words};
    REQUIRE(fleet.brake.engaged().at(narrow).devices == 5);
    fleet.restart(20'000);
    CAPTURE(first);
    REQUIRE(fleet.brake.engaged().contains(narrow));
    CHECK(fleet.brake.engaged().at(narrow).devices == 5);
  }
}

TEST_CASE("An operator's release of the brake counts for devices without a name as well") {
  Emptied fleet(800);
  fleet.restart(20'000);
  REQUIRE(fleet.counted() == 800);
  fleet.now.mono += minutes(1);
  fleet.now.wall += minutes(1);
  fleet.policy.brake_release = format_rfc3339(fleet.now.wall);
  fleet.observe();
  CHECK(fleet.counted() == 0);
}

TEST_CASE("With room for all no device is left without its name, whatever brakes it belongs to") {
  Emptied fleet(400);
  fleet.restart(kBrakeStateLimit);
  CHECK(fleet.counted() == 400);
  CHECK(fleet.brake.bad().size() == 400);
}

namespace {

/// Two nodes of eight devices and one of two, each held by a pod. Three of the first and an hour later three of the
/// second have broken, for which the node's own brake holds them: together they would be too many for the cluster.
struct TwoBraked : Stage {
  TwoBraked() {
    limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
    limits().brake_percent = 30;
    limits().brake_trial_after = hours(720);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    whole_policy().own_namespace = "dhc";
    send_policy();
    for (const auto& [name, devices] : {std::pair("a", 8), std::pair("b", 8), std::pair("c", 2)}) {
      node(std::string("node-") + name, devices);
      for (int i = 0; i < devices; ++i) {
        pod({.name = fmt::format("{}-{}", name, i),
             .node = std::string("node-") + name,
             .owner = fmt::format("ReplicaSet/{}-{}", name, i),
             .device = fmt::format("gpu-{}", i)});
      }
    }
    settle();
    break_three("a");
    CHECK(run_for(hours(1), Seconds(30)).empty());
    break_three("b");
    CHECK(run_for(minutes(10), Seconds(10)).empty());
    REQUIRE(is_braked("node-a"));
    REQUIRE(is_braked("node-b"));
    REQUIRE_FALSE(is_braked("example.com/gpu"));
  }

  void report_three(const std::string& name, Health health, const std::string& message) {
    for (int i = 0; i < 3; ++i) report(fmt::format("{}-{}", name, i), health, message);
    node("node-" + name, 8, health == Health::Healthy ? 8 : 5);
  }
  void break_three(const std::string& name) { report_three(name, Health::Unhealthy, "Xid 79"); }

  [[nodiscard]] bool is_braked(const std::string& subject) const {
    return verdict(subject, Reason::BrakeEngaged) != nullptr;
  }
};

}  // namespace

TEST_CASE("The brakes of two nodes do not become the cluster's because a process begins anew") {
  TwoBraked stage;
  for (int i = 0; i < 2; ++i) {
    stage.restart();
    CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
    CHECK(stage.is_braked("node-a"));
    CHECK(stage.is_braked("node-b"));
    CHECK_FALSE(stage.is_braked("example.com/gpu"));
  }
  stage.report("c-0", Health::Unhealthy, "Xid 79");
  CHECK(stage.run_for(minutes(10), Seconds(10)) == std::vector<std::string>{"c-0"});
}

TEST_CASE("What a process has seen well and then break under a brake that it has read is news to the cluster's") {
  TwoBraked stage;
  stage.restart();
  stage.run_for(minutes(1));
  for (const std::string name : {"a", "b"}) stage.report_three(name, Health::Healthy, {});
  stage.run_for(Seconds(10));
  REQUIRE(stage.is_braked("node-a"));
  REQUIRE(stage.is_braked("node-b"));
  for (const std::string name : {"a", "b"}) stage.break_three(name);
  CHECK(stage.run_for(minutes(3), Seconds(5)).empty());
  CHECK(stage.is_braked("example.com/gpu"));
}

}  // namespace dhc::test
