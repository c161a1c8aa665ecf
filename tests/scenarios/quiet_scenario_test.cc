// What must not happen: writes when nothing changed, writes in observe mode, taints beyond the brake, lost
// incidents where the server has no DeviceTaintRules.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// The reasons held about a device and its pod, without the words that only one mode can say.
std::vector<std::string> all_verdicts(const TaintWorld& world) {
  std::vector<std::string> words;
  for (const auto& verdict : world.verdicts()) {
    words.push_back(fmt::format("{} {} {}", verdict.subject.kind, verdict.subject.name, verdict.device));
  }
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  return words;
}

}  // namespace

TEST_CASE("fifty tainted devices and ten quiet minutes: not one write, also after a restart") {
  TaintWorld world;
  world.whole_policy().limits.brake_at_least = 1000;
  world.whole_policy().status = true;
  world.policy().evict.reset();
  world.send_policy();
  for (int i = 0; i < 13; ++i) world.cluster.add_node({fmt::format("big-{}", i), {}, {{TaintWorld::kDriver, 4}}, {}});
  world.cluster.create_deployment("default", "d", 50, TaintWorld::dra_pod());
  world.run_for(30s);
  const auto pods = world.live("d-");
  REQUIRE(pods.size() == 50);
  for (const auto& pod : pods) world.set_health(world.device_of(pod), "Unhealthy", "Xid 79");
  world.run_for(5min);
  REQUIRE(world.rule_count() == 50);
  auto writes = world.write_count();
  world.run_for(10min);
  CHECK(world.write_count() == writes);
  world.restart_controller();
  world.run_for(1min);
  writes = world.write_count();
  world.run_for(10min);
  CHECK(world.write_count() == writes);
  CHECK(world.steps().size() == 50);
}

TEST_CASE("observe mode writes nothing but Events and its own memory, and has a verdict wherever enforce has one") {
  const auto story = [](Mode mode) {
    auto world = std::make_unique<TaintWorld>();
    world->policy().mode = mode;
    world->policy().taint->node = true;
    world->whole_policy().status = true;
    world->send_policy();
    const auto device = world->start_one();
    world->set_health(device, "Unhealthy", "Xid 79");
    world->run_for(61s);
    return world;
  };
  const auto observed = story(Mode::Observe);
  const auto enforced = story(Mode::Enforce);
  CHECK(all_verdicts(*observed) == all_verdicts(*enforced));
  observed->run_for(30min);
  CHECK(observed->steps().empty());
  for (const auto& write : observed->cluster.writes()) {
    const bool allowed = write.target.find("/events") != std::string::npos ||
                         write.target.find("/configmaps/device-health-incidents") != std::string::npos ||
                         write.target.find("/configmaps/device-health-status?") != std::string::npos;
    CHECK_MESSAGE(allowed, write.target);
  }
  CHECK(observed->says("gpu.example.com/node-a/gpu-0", "WouldTaint"));
  CHECK(observed->says_of_pod("s-0", "WouldEvict"));
}

TEST_CASE("a rule that stands when the mode becomes observe stays, and what would be done is said") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  world.policy().mode = Mode::Observe;
  world.send_policy();
  world.set_health(device, "Healthy");
  world.run_for(1h);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.says(device, "WouldUntaint"));
  world.policy().mode = Mode::Enforce;
  world.send_policy();
  world.run_for(1min);
  CHECK(world.rule_count() == 0);
}

TEST_CASE("paused stops new taints and goes on untainting") {
  TaintWorld world;
  const auto device = world.start_held();
  world.run_until_tainted(device);
  world.whole_policy().limits.paused = true;
  world.send_policy();
  world.cluster.create_pod("default", "p", TaintWorld::dra_pod());
  world.run_for(10s);
  const auto other = world.device_of("p");
  world.set_health(other, "Unhealthy", "Xid 79");
  world.set_health(device, "Healthy");
  world.run_for(30min);
  CHECK(world.rule_count() == 0);
  CHECK(world.says(other, "Paused"));
  world.whole_policy().limits.paused = false;
  world.send_policy();
  world.run_for(1min);
  CHECK(world.effect_of(other) == "NoSchedule");
}

TEST_CASE("a thousand bad devices at once: the brake holds before the first taint and the first eviction") {
  TaintWorld world;
  constexpr int kNodesAtOnce = 125;
  for (int i = 0; i < kNodesAtOnce; ++i)
    world.cluster.add_node({fmt::format("n-{}", i), {{TaintWorld::kResource, 8}}, {{TaintWorld::kDriver, 8}}, {}});
  auto shape = TaintWorld::dra_pod();
  shape.count = 8;
  world.cluster.create_deployment("default", "big", kNodesAtOnce, shape);
  world.run_for(30s);
  for (const auto& pod : world.live("big-")) {
    for (int i = 0; i < 8; ++i)
      world.cluster.set_device_health(world.node_of(pod), fmt::format("gpu-{}", i), "Unhealthy", "Xid 79");
  }
  world.run_for(25min);
  CHECK(world.steps().empty());
  CHECK(world.rule_count() == 0);
  bool said = false;
  for (const auto& verdict : world.verdicts()) said = said || to_string(verdict.reason) == "BrakeEngaged";
  CHECK(said);
  // Well again: as if nothing had been.
  for (const auto& pod : world.live("big-")) {
    for (int i = 0; i < 8; ++i) {
      world.cluster.set_device_health(world.node_of(pod), fmt::format("gpu-{}", i), "Healthy");
    }
  }
  world.run_for(30min);
  CHECK(world.steps().empty());
  CHECK(world.rule_count() == 0);
}

TEST_CASE("a server without DeviceTaintRules: a policy that taints nodes taints the node, one that does not says so") {
  for (const bool node : {false, true}) {
    CAPTURE(node);
    TaintWorld world;
    world.cluster.serve(Res::TaintRules, false);
    world.policy().taint->node = node;
    world.policy().taint->node_at_least_devices = 1;
    world.send_policy();
    const auto device = world.start_one();
    const auto on = world.node_of("s-0");
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(15min);
    CHECK(world.is_tainted(on) == node);
    if (node) {
      CHECK(world.steps() == Words{"PATCH node", "evict"});
      CHECK(world.node_of("s-0") != on);
    } else {
      CHECK(world.steps().empty());
      CHECK(world.says(device, "TaintUnsupported"));
    }
  }
}

TEST_CASE("the kind disappears and comes again while a device is tainted: nobody has acknowledged anything") {
  TaintWorld world;
  const auto device = world.start_tainted();
  world.cluster.serve(Res::TaintRules, false);
  world.run_for(20min);
  CHECK_FALSE(world.says(device, "Acknowledged"));
  world.cluster.serve(Res::TaintRules, true);
  world.run_for(10min);
  CHECK(world.says(device, "Tainted"));
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.steps() == Words{"PATCH rule"});
}

TEST_CASE("a kind that appears later is used within five minutes") {
  TaintWorld world;
  world.cluster.serve(Res::TaintRules, false);
  const auto device = world.start_held();
  world.run_for(10min);
  CHECK(world.says(device, "TaintUnsupported"));
  world.cluster.serve(Res::TaintRules, true);
  world.run_for(5min + 10s);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a kind that is served in v1beta2 alone is written there") {
  TaintWorld world;
  world.cluster.settings().versions[Res::TaintRules] = "v1beta2";
  world.restart_controller();
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(5min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  CHECK(world.effect_of(device) == "NoSchedule");
}
