// caps.ownerDevicesPerDay: a program that breaks each device it is given walks no further than this.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/limits/caps.h"
#include "tests/controller/taint/gpu_stage.h"
#include "tests/support/core/stage.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Nodes of eight plugin devices, each held by a pod; no cap but that of an owner is ever reached.
struct Owned : Stage {
  explicit Owned(int node_count) : nodes(node_count) {
    widen_caps(limits());
    limits().cap_owner_per_day = {.percent = 1, .at_least = 2};
    limits().evictions_per_minute = 6000;
    limits().max_in_flight = limits().per_node = limits().per_owner = 1000;
    limits().brake_at_least = 10'000;
    policy().after = Seconds(10);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    whole_policy().own_namespace = "dhc";
    hold_caps();
    send_policy();
    for (int n = 0; n < nodes; ++n) node(fmt::format("node-{}", n), 8);
  }

  static std::string name_of(int number) { return fmt::format("p-{}", number); }

  /// The pod on the device of this number.
  void put_pod(int number, const std::string& owner, Health health = Health::Healthy) {
    pod({.name = name_of(number),
         .node = fmt::format("node-{}", number / 8),
         .owner = owner,
         .device = fmt::format("gpu-{}", number % 8),
         .health = health});
  }

  void fill(const std::string& owner) {
    for (int i = 0; i < nodes * 8; ++i) put_pod(i, owner);
    settle();
  }

  /// Lets the devices break one after the other, the evicted pods go, and gives these.
  Names break_slowly(const std::vector<int>& devices, Millis every, bool restarts = false) {
    Names gone;
    for (const int number : devices) {
      report(name_of(number), Health::Unhealthy);
      if (restarts) restart();
      for (auto& name : run_for(every, Seconds(10))) {
        remove_pod(name);
        gone.push_back(std::move(name));
      }
    }
    return gone;
  }

  /// A ReplicaSet of this Deployment.
  void replica_set(const std::string& name, const std::string& deployment, const std::string& deployment_uid) {
    k8s::Owner object;
    object.kind = k8s::Kind::ReplicaSet;
    object.meta.ns = "default";
    object.meta.name = name;
    object.meta.uid = "uid-" + name;
    object.meta.controller =
        k8s::OwnerRef{.api_version = "apps/v1", .kind = "Deployment", .name = deployment, .uid = deployment_uid};
    put(object);
  }

  int nodes;
};

}  // namespace

TEST_CASE("A program that breaks each device it is given takes two a day, and others lose theirs as before") {
  Owned fleet(4);
  for (int i = 0; i < 32; ++i) fleet.put_pod(i, i % 2 == 0 ? "ReplicaSet/poison" : fmt::format("ReplicaSet/rs-{}", i));
  fleet.settle();
  const auto first = fleet.now();
  CHECK(fleet.break_slowly({0, 8, 16, 24}, minutes(20)) == Names{"p-0", "p-8"});
  const auto* held = fleet.verdict("p-16", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message ==
        "2 devices of example.com/gpu went out of service on our account within 24 h while pods of ReplicaSet "
        "default/poison held them, caps.ownerDevicesPerDay is 1 percent and at least 2 of the 14 that they hold: look "
        "at what it runs, release the cap with the annotation device-health.io/cap-release on the configuration's "
        "ConfigMap, or wait");
  REQUIRE(held->next_at);
  CHECK(*held->next_at - first.wall >= hours(24));
  CHECK(*held->next_at - first.wall < hours(24) + minutes(2));
  CHECK(fleet.break_slowly({1, 9, 17}, minutes(20)) == Names{"p-1", "p-9", "p-17"});
}

TEST_CASE("An owner's device counts for a day, to the millisecond") {
  Owned fleet(4);
  fleet.fill("ReplicaSet/poison");
  CHECK(fleet.break_slowly({0, 8}, hours(2)) == Names{"p-0", "p-8"});
  fleet.report("p-16", Health::Unhealthy);
  fleet.run_for(minutes(2));
  const auto* held = fleet.verdict("p-16", Reason::CapReached);
  REQUIRE(held != nullptr);
  fleet.advance(std::chrono::duration_cast<Millis>(*held->next_at - fleet.now().wall) - Millis(1));
  CHECK(fleet.settle().empty());
  fleet.advance(Millis(1));
  CHECK(fleet.settle() == Names{"p-16"});
}

TEST_CASE("The share is that of the devices that the owner's pods hold: a large Job loses more than two a day") {
  Owned fleet(40);
  fleet.limits().cap_owner_per_day = {.percent = 1, .at_least = 1};
  fleet.send_policy();
  fleet.fill("ReplicaSet/large");
  // 1 % of the 317 to 320 that it holds.
  CHECK(fleet.break_slowly({0, 8, 16, 24, 32}, minutes(20)) == Names{"p-0", "p-8", "p-16"});
}

TEST_CASE("A controller that restarts with every device that an owner breaks lets it break no more") {
  Owned fleet(4);
  fleet.fill("ReplicaSet/poison");
  CHECK(fleet.break_slowly({0, 8, 16, 24}, minutes(20), true) == Names{"p-0", "p-8"});
  CHECK(fleet.verdict("p-24", Reason::CapReached) != nullptr);
}

TEST_CASE("A Deployment's ReplicaSets are one owner, also of one that is made anew under its name") {
  Owned fleet(4);
  fleet.replica_set("one", "server", "uid-old");
  fleet.replica_set("two", "server", "uid-old");
  fleet.replica_set("three", "server", "uid-new");
  fleet.put_pod(0, "ReplicaSet/one");
  fleet.put_pod(8, "ReplicaSet/two");
  fleet.put_pod(16, "ReplicaSet/three");
  fleet.settle();
  CHECK(fleet.break_slowly({0, 8, 16}, minutes(20)) == Names{"p-0", "p-8"});
  const auto* held = fleet.verdict("p-16", Reason::CapReached);
  REQUIRE(held != nullptr);
  CHECK(held->message.contains("pods of Deployment default/server held them"));
}

TEST_CASE("Who shares a device with an owner that has used up its cap goes all the same") {
  Owned fleet(4);
  fleet.fill("ReplicaSet/poison");
  fleet.pod({.name = "neighbour",
             .node = "node-2",
             .owner = "ReplicaSet/quiet",
             .device = "gpu-0",
             .health = Health::Healthy});
  fleet.settle();
  CHECK(fleet.break_slowly({0, 8}, minutes(20)) == Names{"p-0", "p-8"});
  fleet.report("neighbour", Health::Unhealthy);
  CHECK(fleet.break_slowly({16}, minutes(20)) == Names{"neighbour"});
  CHECK(fleet.verdict("p-16", Reason::CapReached) != nullptr);
}

TEST_CASE("A device that recovers and breaks again under its owner within the day counts once") {
  Owned fleet(4);
  fleet.fill("ReplicaSet/flapping");
  CHECK(fleet.break_slowly({0}, hours(2)) == Names{"p-0"});
  fleet.put_pod(0, "ReplicaSet/flapping");
  fleet.pod_named("p-0").meta.uid = "uid-next";
  fleet.upsert_pod("p-0");
  fleet.run_for(hours(1), minutes(1));
  CHECK(fleet.break_slowly({0, 8, 16}, hours(2)) == Names{"p-0", "p-8"});
}

TEST_CASE("An operator's release of the caps gives an owner its devices of the day back") {
  Owned fleet(4);
  fleet.fill("ReplicaSet/poison");
  CHECK(fleet.break_slowly({0, 8, 16}, minutes(20)) == Names{"p-0", "p-8"});
  fleet.whole_policy().cap_release = format_rfc3339(fleet.now().wall + hours(1));
  fleet.send_policy();
  CHECK(fleet.run_for(minutes(1)).empty());  // a time ahead of the clock is none
  fleet.whole_policy().cap_release = format_rfc3339(fleet.now().wall);
  fleet.send_policy();
  CHECK(fleet.run_for(minutes(1)) == Names{"p-16"});
}

TEST_CASE("No third device of an owner is tainted within the day, nor a node for it") {
  for (const bool by_node : {false, true}) {
    CAPTURE(by_node);
    Owned fleet(3);
    fleet.policy().taint = TaintRules{.node = by_node, .node_at_least_devices = 1, .node_at_least_percent = 1};
    fleet.policy().evict.reset();
    fleet.send_policy();
    for (int n = 0; n < 3; ++n) {
      const auto device = fmt::format("gpu-{}", n);
      if (by_node) {
        fleet.put_pod(n * 8, "ReplicaSet/poison");
        continue;
      }
      fleet.slice(fmt::format("node-{}", n), {device});
      fleet.claim(fmt::format("c-{}", n), {device}, Owned::name_of(n * 8));
      fleet.pod({.name = Owned::name_of(n * 8),
                 .node = fmt::format("node-{}", n),
                 .owner = "ReplicaSet/poison",
                 .claim = fmt::format("c-{}", n)});
    }
    fleet.settle();
    CHECK(fleet.break_slowly({0, 8, 16}, minutes(20)).empty());
    CHECK(std::ranges::count(fleet.verdicts(), Reason::CapReached, &Verdict::reason) == 1);
    CHECK(std::ranges::count_if(fleet.writes(), [](const auto& word) {
            return word.starts_with("apply") || word.starts_with("taint");
          }) == 2);
    fleet.restart();
    CHECK(fleet.break_slowly({16}, minutes(20)).empty());
    CHECK(std::ranges::count(fleet.verdicts(), Reason::CapReached, &Verdict::reason) == 1);
  }
}

TEST_CASE("A node's taint takes more devices of an owner than its cap, and none of them without room") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    Owned fleet(3);
    fleet.policy().taint = TaintRules{.node = true, .node_at_least_devices = 2, .node_at_least_percent = 1};
    fleet.send_policy();
    fleet.fill("ReplicaSet/poison");
    CHECK(fleet.break_slowly({0}, minutes(20)) == Names{"p-0"});
    for (const int number : {1, 2, 3}) fleet.report(Owned::name_of(number), Health::Unhealthy);
    auto gone = fleet.run_for(minutes(1));
    CHECK(std::ranges::count_if(fleet.writes(), [](const auto& word) { return word.starts_with("taint"); }) == 1);
    if (restarts) fleet.restart();
    for (const auto& name : fleet.run_for(minutes(20))) gone.push_back(name);
    CHECK(gone.size() == 1);
    // Nor is another node tainted for it.
    for (const int number : {8, 9, 10}) fleet.report(Owned::name_of(number), Health::Unhealthy);
    CHECK(fleet.run_for(minutes(20)).empty());
    CHECK(std::ranges::count_if(fleet.writes(), [](const auto& word) { return word.starts_with("taint"); }) == 1);
  }
}

TEST_CASE("Three devices of one owner that break in one turn are two that go") {
  Owned fleet(3);
  fleet.fill("ReplicaSet/poison");
  for (const int number : {0, 8, 16}) fleet.report(Owned::name_of(number), Health::Unhealthy);
  CHECK(fleet.run_for(minutes(5)).size() == 2);
}

}  // namespace dhc::test
