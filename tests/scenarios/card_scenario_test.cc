// A physical card that is many devices: one of them breaks, and no new pod gets any of them until it is well.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// A pod on one of three devices of a card; the fourth device of its node is a card of its own.
struct Card : TaintWorld {
  explicit Card(std::uint64_t seed = 1, bool evicts = false) : TaintWorld(seed) {
    if (!evicts) policy().evict.reset();
    send_policy();
    bad = start_one();
    pool = bad.substr(0, bad.rfind('/'));
    const auto own = bad.substr(pool.size() + 1);
    std::vector<std::string> names = {own};
    for (const std::string name : {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}) {
      if (name == own || names.size() == 3) continue;
      names.push_back(name);
      others.push_back(pool + "/" + name);
    }
    cluster.share_counters(node_of("s-0"), names, "card-a");
    run_for(10s);
  }
  void breaks() { set_health(bad, "Unhealthy", "Xid 79"); }
  [[nodiscard]] std::size_t covered() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(others, [&](const auto& device) { return effect_of(device) == "NoSchedule"; }));
  }

  std::string bad;
  std::string pool;
  std::vector<std::string> others;
};

}  // namespace

TEST_CASE("with a bad device the others of its card are tainted, and no other device") {
  Card world;
  world.breaks();
  world.run_for(3min);
  CHECK(world.covered() == world.others.size());
  CHECK(world.rule_count() == 1 + world.others.size());
  const auto rule = world.rule_for(world.others.front());
  CHECK(text(rule, {"metadata", "annotations", "device-health.io/same-card-as"}) ==
        world.bad.substr(world.pool.size() + 1));
  CHECK(sim::field(rule, {"metadata", "annotations", "device-health.io/incidents"}) == nullptr);
  // Nothing is made or removed again.
  const auto steps = world.steps().size();
  world.run_for(1h);
  CHECK(world.steps().size() == steps);
  CHECK(world.cluster.pod_names("default") == Words{"s-0"});
  world.set_health(world.bad, "Healthy");
  world.run_for(12min);
  CHECK(world.rule_count() == 0);
  world.run_for(1h);
  CHECK(world.steps().size() == steps + 1 + world.others.size());
}

TEST_CASE("the pod of a bad device is evicted once the whole card is tainted, and comes back on another one") {
  Card world(1, true);
  const auto uid = world.uid("s-0");
  world.breaks();
  world.run_for(3min);
  CHECK(world.steps() == Words{"PATCH rule", "PATCH rule", "PATCH rule", "evict"});
  CHECK(world.uid("s-0") != uid);
  const auto device = world.device_of("s-0");
  CHECK(device != world.bad);
  CHECK(std::ranges::find(world.others, device) == world.others.end());
}

TEST_CASE("the card's other devices are left alone where the policy says so, and let go when it begins to") {
  Card world;
  world.policy().taint->partitions = false;
  world.send_policy();
  world.breaks();
  world.run_for(10min);
  CHECK(world.rule_count() == 1);
  world.policy().taint->partitions = true;
  world.send_policy();
  world.run_for(1min);
  CHECK(world.covered() == world.others.size());
  world.policy().taint->partitions = false;
  world.send_policy();
  world.run_for(1min);
  CHECK(world.covered() == 0);
  CHECK(world.effect_of(world.bad) == "NoSchedule");
}

TEST_CASE("of two bad devices of a card the last that is well lets the others go") {
  Card world;
  world.cluster.create_stateful_set("default", "t", 3, TaintWorld::dra_pod());
  world.run_for(10s);
  std::string second;
  for (const auto& name : {"t-0", "t-1", "t-2"}) {
    if (std::ranges::find(world.others, world.device_of(name)) != world.others.end()) second = world.device_of(name);
  }
  REQUIRE(!second.empty());
  world.breaks();
  world.run_for(3min);
  world.set_health(second, "Unhealthy", "Xid 79");
  world.run_for(5min);
  CHECK(text(world.rule_for(second), {"spec", "taint", "effect"}) == "NoSchedule");
  world.set_health(world.bad, "Healthy");
  world.run_for(12min);
  for (const auto& device : world.others) CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.effect_of(world.bad) == "NoSchedule");  // for the second one's sake
  world.set_health(second, "Healthy");
  world.run_for(12min);
  CHECK(world.rule_count() == 0);
}

TEST_CASE("a rule for the card that somebody deletes is not made again in the incident") {
  Card world;
  world.breaks();
  world.run_for(3min);
  const auto name = text(world.rule_for(world.others.front()), {"metadata", "name"});
  REQUIRE(world.cluster.kubectl_delete(Res::TaintRules, "", name).status == 200);
  world.run_for(1min);
  world.restart_controller();
  world.run_for(1h);
  CHECK(world.effect_of(world.others.front()).empty());
  CHECK(world.covered() == world.others.size() - 1);
}

TEST_CASE("a rule for the card that somebody acknowledges is taken away, and not made again in the incident") {
  Card world;
  world.breaks();
  world.run_for(3min);
  const auto let_go = world.others.front();
  const auto name = text(world.rule_for(let_go), {"metadata", "name"});
  const sim::Json word = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "tested apart"}}}}}};
  REQUIRE(world.cluster.kubectl_patch(Res::TaintRules, "", name, word).status == 200);
  world.run_for(1min);
  CHECK(world.effect_of(let_go).empty());
  world.restart_controller();
  world.run_for(1h);
  CHECK(world.effect_of(let_go).empty());
  CHECK(world.covered() == world.others.size() - 1);
  CHECK(world.effect_of(world.bad) == "NoSchedule");
  // The next incident is another matter.
  world.set_health(world.bad, "Healthy");
  world.run_for(12min);
  CHECK(world.rule_count() == 0);
  world.run_for(1h);
  world.breaks();
  world.run_for(3min);
  CHECK(world.covered() == world.others.size());
}

TEST_CASE("a restart of ours at any moment leaves no rule behind, and makes none twice") {
  for (int at = 0; at < 12; ++at) {
    INFO("restart after ", at * 15, " s");
    Card world(static_cast<std::uint64_t>(at + 1));
    world.breaks();
    world.run_for(at * 15s);
    world.restart_controller();
    world.run_for(5min);
    CHECK(world.covered() == world.others.size());
    world.set_health(world.bad, "Healthy");
    world.run_for(9min + at * 15s);
    world.restart_controller();
    world.run_for(15min);
    CHECK(world.rule_count() == 0);
  }
}

TEST_CASE("while the driver is away the card's taints stay") {
  Card world;
  world.breaks();
  world.run_for(3min);
  world.cluster.kill_driver(world.node_of("s-0"), TaintWorld::kDriver);
  world.run_for(3min);
  world.restart_controller();
  world.run_for(10min);
  CHECK(world.covered() == world.others.size());
}

TEST_CASE("a card counts as one for the caps, and each of its rules for taints.perMinute") {
  Card world;
  world.hold_caps();
  world.whole_policy().limits.taints_per_minute = 1;
  world.whole_policy().limits.cap_node = {.percent = 1, .at_least = 1};
  world.send_policy();
  world.breaks();
  world.run_for(90s);
  CHECK(world.rule_count() < 1 + world.others.size());
  world.run_for(5min);
  CHECK(world.rule_count() == 1 + world.others.size());
}

TEST_CASE("a device that its driver keeps new pods off speaks for its card as well") {
  Card world(1, true);
  const auto name = world.bad.substr(world.pool.size() + 1);
  world.cluster.taint_device(world.node_of("s-0"), name, {"gpu.example.com/xid", "79", "NoSchedule"});
  world.run_for(5s);
  world.breaks();
  world.run_for(3min);
  CHECK(world.covered() == world.others.size());
  CHECK(world.effect_of(world.bad).empty());
  CHECK(std::ranges::find(world.others, world.device_of("s-0")) == world.others.end());
}

TEST_CASE("a device that leaves the card is let go, and the rest is not") {
  Card world;
  world.breaks();
  world.run_for(3min);
  const auto gone = world.others.front();
  world.cluster.share_counters(world.node_of("s-0"), {gone.substr(world.pool.size() + 1)}, "card-b");
  world.run_for(1min);
  CHECK(world.effect_of(gone).empty());
  CHECK(world.covered() == world.others.size() - 1);
}

TEST_CASE("a policy that observes from now on leaves the card's taints as it leaves the device's") {
  Card world;
  world.breaks();
  world.run_for(3min);
  world.policy().mode = Mode::Observe;
  world.send_policy();
  world.set_health(world.bad, "Healthy");
  world.run_for(30min);
  CHECK(world.effect_of(world.bad) == "NoSchedule");
  CHECK(world.covered() == world.others.size());
}

TEST_CASE("what a standby sees go is no operator's word: its leader removes such rules as well") {
  Card world;
  world.breaks();
  world.run_for(3min);
  world.lead(false);
  world.run_for(10s);
  for (const auto& device : world.others) {
    const auto name = text(world.rule_for(device), {"metadata", "name"});
    REQUIRE(world.cluster.kubectl_delete(Res::TaintRules, "", name).status == 200);
  }
  world.run_for(1min);
  world.lead(true);
  world.run_for(2min);
  CHECK(world.covered() == world.others.size());
}

TEST_CASE("a card that the API server lets nobody taint whole holds its pods for two minutes") {
  Card world(1, true);
  world.cluster.faults().add({.method = k8s::Method::Patch, .path_contains = "dhc-card-", .count = -1, .status = 403U});
  world.breaks();
  world.run_until_tainted(world.bad);
  world.run_for(110s);
  CHECK(world.evictions().empty());
  CHECK(world.says_of_pod("s-0", "WaitingForTaint"));
  world.run_for(1min);
  CHECK(world.evictions() == Words{"default/s-0"});
  CHECK(world.covered() == 0);
}
