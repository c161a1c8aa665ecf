// How a taint goes away again: by each kind of evidence, by time, by an operator, and not by appearance.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

constexpr auto kXidTaint = "gpu.example.com/xid";

struct Place {
  std::string node;
  std::string device;
};

Place place_of(const std::string& device) {
  const auto first = device.find('/');
  const auto last = device.rfind('/');
  return {device.substr(first + 1, last - first - 1), device.substr(last + 1)};
}

/// The pod has been evicted, the device is tainted and nobody holds it.
std::string abandoned(TaintWorld& world) {
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  REQUIRE(world.steps() == Words{"PATCH rule", "evict"});
  return device;
}

/// Another card sits in the place of a bad one, and the kubelet goes on repeating what it was last told.
void swap(TaintWorld& world, const std::string& device) {
  const auto place = place_of(device);
  world.cluster.replace_device(place.node, place.device);
  world.set_health(device, "Unhealthy", "Xid 79");
}

}  // namespace

TEST_CASE(
    "a holder that reports Healthy for ten minutes without interruption untaints the device, a second less does not") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  world.run_for(5min);
  world.set_health(device, "Healthy");
  world.run_for(9min);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(5s);
  world.set_health(device, "Healthy");
  world.run_for(10min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.run_until_untainted(device, 10s) < 10s);
  CHECK(world.says(device, "Untainted"));
  world.run_for(1h);
  CHECK(world.steps() == Words{"PATCH rule", "DELETE rule"});
}

TEST_CASE("a driver's restart that reads Unknown and then Unhealthy again is no recovery") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  for (int i = 0; i < 5; ++i) {
    world.cluster.kill_driver(place_of(device).node, TaintWorld::kDriver);
    world.run_for(3min);
    world.cluster.start_driver(place_of(device).node, TaintWorld::kDriver);
    world.run_for(3min);
  }
  CHECK(world.steps() == Words{"PATCH rule"});
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("the driver's own taint, once it was there and has been gone for ten minutes, is evidence") {
  TaintWorld world;
  const auto device = abandoned(world);
  const auto place = place_of(device);
  world.cluster.taint_device(place.node, place.device, {kXidTaint, "79", "NoSchedule"});
  world.run_for(1h);
  CHECK(world.effect_of(device) == "NoSchedule");
  world.cluster.untaint_device(place.node, place.device);
  world.run_for(9min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.run_until_untainted(device, 2min) < 2min);
}

TEST_CASE("a driver's taint that comes back within ten minutes was not gone") {
  TaintWorld world;
  const auto device = abandoned(world);
  const auto place = place_of(device);
  for (int i = 0; i < 6; ++i) {
    world.cluster.taint_device(place.node, place.device, {kXidTaint, "79", "NoSchedule"});
    world.run_for(5min);
    world.cluster.untaint_device(place.node, place.device);
    world.run_for(5min);
  }
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a driver that restarts with its taint does not look as if the taint had gone") {
  TaintWorld world;
  const auto device = abandoned(world);
  const auto place = place_of(device);
  world.cluster.taint_device(place.node, place.device, {kXidTaint, "79", "NoSchedule"});
  world.run_for(5min);
  world.cluster.kill_driver(place.node, TaintWorld::kDriver);
  world.run_for(1h);
  CHECK(world.effect_of(device) == "NoSchedule");
  world.cluster.start_driver(place.node, TaintWorld::kDriver);
  world.run_for(30min);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a device that its driver has tainted needs no rule of ours, and its pod is evicted all the same") {
  TaintWorld world;
  const auto device = world.start_one();
  const auto place = place_of(device);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.cluster.taint_device(place.node, place.device, {kXidTaint, "79", "NoSchedule"});
  world.run_for(10min);
  CHECK(world.steps() == Words{"evict"});
  CHECK(world.says(device, "TaintedByOther"));
}

TEST_CASE("a new card in the place of the bad one starts clean") {
  TaintWorld world;
  const auto device = abandoned(world);
  world.run_for(1h);
  const auto place = place_of(device);
  world.cluster.replace_device(place.node, place.device);
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  // The new one breaks: a first incident, held like a first one.
  world.set_health(device, "Unhealthy", "Xid 48");
  world.run_for(1h);
  CHECK(world.rule_for(device).is_null());
  world.cluster.create_pod("default", "p", TaintWorld::dra_pod());
  world.run_for(5min);
  for (const auto& [name, rule] : world.cluster.store().all(Res::TaintRules)) {
    CHECK(text(*rule, {"metadata", "annotations", "device-health.io/incidents"}) == "1");
  }
}

TEST_CASE("what the old card's pod still says is not said of the new card, and what it goes on saying is") {
  TaintWorld world;
  const auto device = world.start_held();
  SUBCASE("it is said in an incident") { world.run_until_tainted(device); }
  SUBCASE("its incident has not opened") { world.run_for(5s); }
  SUBCASE("it comes after the new card's slice") {
    world.set_health(device, "Healthy");
    world.run_for(5s);
    world.hold(k8s::Kind::Pod, true);
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(2s);
  }
  const bool was_tainted = !world.rule_for(device).is_null();
  swap(world, device);
  world.run_for(2s);
  world.hold(k8s::Kind::Pod, false);
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  world.run_for(2min);
  CHECK(world.rule_for(device).is_null());
  const auto steps = was_tainted ? Words{"PATCH rule", "DELETE rule"} : Words{};
  CHECK(world.steps() == steps);
  world.set_health(device, "Healthy");
  world.run_for(1h);
  CHECK(world.steps() == steps);
  CHECK(!world.says_of_pod("s-0", "WouldEvict"));
}

TEST_CASE("a new card of which the pod before it goes on saying that it is bad, is bad") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  swap(world, device);
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  world.run_for(10min);
  CHECK(text(world.rule_for(device), {"metadata", "annotations", "device-health.io/incidents"}) == "1");
}

TEST_CASE("a card that is replaced while nobody watches is not bad by what its place was called before") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  world.hold(k8s::Kind::ResourceSlice, true);
  swap(world, device);
  world.run_for(10s);
  world.restart_controller();
  world.hold(k8s::Kind::ResourceSlice, false);
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  world.run_for(1min);
  CHECK(world.rule_for(device).is_null());
  // Nobody remembers the old card's incident now, nor that there was another card.
  world.restart_controller();
  world.run_for(30s);
  world.set_health(device, "Healthy");
  world.run_for(1h);
  CHECK(world.steps() == Words{"PATCH rule", "DELETE rule"});
}

TEST_CASE("a pod that came to the new card speaks for it at once") {
  TaintWorld world;
  const auto device = abandoned(world);
  const auto place = place_of(device);
  world.cluster.replace_device(place.node, place.device);
  CHECK(world.run_until_untainted(device, 1min) < 1min);
  world.cluster.create_pod("default", "p", TaintWorld::dra_pod());
  world.run_for(5s);
  const auto again = world.device_of("p");
  world.set_health(again, "Unhealthy", "Xid 48");
  world.run_for(2min);
  CHECK(!world.rule_for(again).is_null());
}

TEST_CASE("without evidence a first incident is held for three days, then the device is on probation") {
  TaintWorld world;
  const auto device = abandoned(world);
  world.run_for(71h);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.run_until_untainted(device, 2h) < 2h);
  CHECK(world.says(device, "OnProbation"));
  // The simulator remembers the newest requests alone.
  CHECK(world.steps() == Words{"DELETE rule"});
}

TEST_CASE("one Unhealthy report on probation is an incident at once, and doubles the hold") {
  TaintWorld world;
  world.policy().recover.hold = 1h;
  world.send_policy();
  const auto device = abandoned(world);
  CHECK(world.run_until_untainted(device, 2h) < 2h);
  // Everything else is taken, so that the pod that comes next meets it.
  world.set_health(device, "Healthy");
  const auto place = place_of(device);
  for (const auto* node : {"node-a", "node-b"}) world.cluster.cordon(node, node != place.node);
  for (int i = 0; i < 4; ++i) world.cluster.create_pod("default", "p" + std::to_string(i), TaintWorld::dra_pod());
  world.run_for(10s);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(30s);
  CHECK(world.effect_of(device) == "NoSchedule");
  // The first blink came within healthyFor: the same break.
  CHECK(text(world.rule_for(device), {"metadata", "annotations", "device-health.io/incidents"}) == "2");
  for (int i = 0; i < 4; ++i) world.cluster.kubectl_delete(Res::Pods, "default", "p" + std::to_string(i));
  world.run_for(10s);
  const auto taken = world.run_until_untainted(device, 4h);
  CHECK(taken > 1h + 50min);
  CHECK(taken < 2h + 10min);
}

TEST_CASE("then: Keep waits for an operator") {
  TaintWorld world;
  world.policy().recover.hold = 1h;
  world.policy().recover.probation = false;
  world.send_policy();
  const auto device = abandoned(world);
  world.run_for(12h);
  CHECK(world.effect_of(device) == "NoSchedule");
  const auto name = text(world.rule_for(device), {"metadata", "name"});
  REQUIRE(world.cluster
              .kubectl_patch(Res::TaintRules, "", name,
                             {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "yes"}}}}}})
              .status == 200);
  CHECK(world.run_until_untainted(device, 15min) < 15min);
}

TEST_CASE("an operator's annotation on the node acknowledges what began before its time, and nothing later") {
  TaintWorld world;
  const auto device = abandoned(world);
  const auto node = place_of(device).node;
  const auto annotate = [&](WallTime when) {
    const Json patch = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", format_rfc3339(when)}}}}}};
    REQUIRE(world.cluster.kubectl_patch(Res::Nodes, "", node, patch).status == 200);
  };
  annotate(world.now.wall - 10min);
  world.run_for(30min);
  CHECK(world.effect_of(device) == "NoSchedule");
  annotate(world.now.wall);
  CHECK(world.run_until_untainted(device, 15min) < 15min);
}

TEST_CASE("a device that flaps faster than the window is never tainted") {
  TaintWorld world;
  const auto device = world.start_one();
  for (int i = 0; i < 30; ++i) {
    world.set_health(device, i % 2 == 0 ? "Unhealthy" : "Healthy", "Xid 13");
    world.run_for(30s);
  }
  CHECK(world.steps().empty());
}

TEST_CASE("a device that flaps more slowly stays tainted, and each incident makes it wait longer") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  for (int i = 0; i < 4; ++i) {
    world.set_health(device, "Healthy");
    world.run_for(5min);
    CHECK(world.effect_of(device) == "NoSchedule");
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(5min);
  }
  CHECK(text(world.rule_for(device), {"metadata", "annotations", "device-health.io/incidents"}) == "4");
  const auto steps = world.steps();
  CHECK(std::ranges::count(steps, "DELETE rule") == 0);
  CHECK(std::ranges::count(steps, "PATCH rule") == 4);
}

TEST_CASE("too many incidents quarantine the device until an operator acknowledges") {
  TaintWorld world;
  world.policy().recover.quarantine_above = 2;
  world.policy().recover.hold = 10min;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  for (int i = 0; i < 3; ++i) {
    world.set_health(device, "Healthy");
    world.run_for(2min);
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(10min);
  }
  CHECK(world.says(device, "Quarantined"));
  world.set_health(device, "Healthy");
  world.run_for(12h);
  CHECK(world.effect_of(device) == "NoSchedule");
  const auto name = text(world.rule_for(device), {"metadata", "name"});
  world.cluster.kubectl_patch(Res::TaintRules, "", name,
                              {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "yes"}}}}}});
  CHECK(world.run_until_untainted(device, 15min) < 15min);
}

TEST_CASE("a restart at any moment of a recovery untaints once, and not before its time") {
  for (int after = 0; after < 660; after += 47) {
    CAPTURE(after);
    TaintWorld world;
    const auto device = world.start_tainted();
    world.set_health(device, "Healthy");
    const auto healthy_at = world.now.mono;
    world.run_for(Seconds(after));
    world.restart_controller();
    static_cast<void>(world.run_until_untainted(device, 30min));
    CHECK(world.now.mono - healthy_at >= 10min);
    world.run_for(10min);
    CHECK(world.steps() == Words{"PATCH rule", "DELETE rule"});
  }
}

TEST_CASE("the rule of a device whose node has gone is collected after a day") {
  TaintWorld world;
  const auto device = abandoned(world);
  world.policy().recover.probation = false;
  world.send_policy();
  world.cluster.remove_node(place_of(device).node);
  world.run_for(23h);
  CHECK(world.rule_count() == 1);
  world.run_for(2h);
  CHECK(world.rule_count() == 0);
}

TEST_CASE("what a device has done is remembered through a restart, and a deleted memory is rebuilt from the rule") {
  TaintWorld world;
  const auto device = abandoned(world);
  world.run_for(1min);
  const auto state = world.cluster.get(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  REQUIRE(state != nullptr);
  CHECK(state->dump().size() < 512UL * 1024);
  world.restart_controller();
  world.run_for(1min);
  CHECK(world.says(device, "Tainted"));
  world.cluster.kubectl_delete(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  world.restart_controller();
  world.run_for(10min);
  CHECK(world.says(device, "Tainted"));
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
}

TEST_CASE("a damaged memory is said, written anew, and costs no taint") {
  TaintWorld world;
  const auto device = abandoned(world);
  world.run_for(1min);
  Json data;
  const auto state = world.cluster.get(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  REQUIRE(state != nullptr);
  for (const auto& [key, value] : (*state)["data"].items()) data[key] = "{\"devices\":[{\"x";
  world.cluster.store().edit(Res::ConfigMaps, {TaintWorld::kOwnNamespace, "device-health-incidents"},
                             [&](Json& map) { map["data"] = data; });
  world.restart_controller();
  world.run_for(10min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.says(device, "Tainted"));
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  const auto after = world.cluster.get(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  CHECK((*after)["data"] != data);
}
