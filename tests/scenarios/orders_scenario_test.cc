// Every order of what happens, and a restart of the controller after each of its events, ends the same.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "tests/support/core/job_world.h"
#include "tests/support/core/orders.h"
#include "tests/support/core/taint_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::allowed_orders;
using dhc::test::Event;
using dhc::test::expect_one_end;
using dhc::test::job_shape;
using dhc::test::JobWorld;
using dhc::test::Story;
using dhc::test::TaintWorld;
using dhc::test::way_of;
using namespace std::chrono_literals;

namespace {

using Places = std::vector<std::size_t>;
using Sentences = std::vector<std::string>;

/// The device is tainted, and its pod runs on another one.
const Sentences kMovedOn = {"Node node-a Tainted", "evicted default/s-0",
                            "rule gpu.example.com/node-a/gpu-0 NoSchedule"};

/// A pod `s-0` on a device, and that device.
struct OneDevice : TaintWorld {
  std::string device;
  std::string node;

  void begin() {
    device = start_one();
    node = node_of("s-0");
  }
  void begin_tainted() {
    device = start_tainted();
    node = node_of("s-0");
  }
  void annotate_rule() {
    const Json patch = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", "fan replaced"}}}}}};
    REQUIRE(cluster.kubectl_patch(Res::TaintRules, "", rule_name(), patch).status == 200);
  }
  void annotate_node() {
    const Json patch = {{"metadata", {{"annotations", {{"device-health.io/acknowledge", format_rfc3339(now.wall)}}}}}};
    REQUIRE(cluster.kubectl_patch(Res::Nodes, "", node, patch).status == 200);
  }
  void delete_rule() { REQUIRE(cluster.kubectl_delete(Res::TaintRules, "", rule_name()).status == 200); }
  /// The pod, or its namespace.
  void opt_out(Res res, bool is_out) {
    const Json patch = {
        {"metadata", {{"annotations", {{"device-health.io/opt-out", is_out ? Json("true") : Json(nullptr)}}}}}};
    const bool is_pod = res == Res::Pods;
    REQUIRE(cluster.kubectl_patch(res, is_pod ? "default" : "", is_pod ? "s-0" : "default", patch).status == 200);
  }
  void set_mode(Mode mode) {
    policy().mode = mode;
    send_policy();
  }
  /// What the driver writes into the status of the pod's claim.
  void set_ready(const std::string& status) {
    const auto last = device.rfind('/');
    const auto name = claim_name_of(pod("s-0"), list(pod("s-0"), {"spec", "resourceClaims"}).front());
    const Json condition = {{"type", "Ready"}, {"status", status}, {"reason", "Xid"}, {"message", "Xid 79"}};
    cluster.store().edit(Res::Claims, {"default", name}, [&](Json& claim) {
      claim["status"]["devices"] = Json::array({Json{{"driver", kDriver},
                                                     {"pool", node},
                                                     {"device", device.substr(last + 1)},
                                                     {"conditions", Json::array({condition})}}});
    });
  }

 private:
  [[nodiscard]] std::string rule_name() const { return text(rule_for(device), {"metadata", "name"}); }
};

/// A Job of two pods that may lose one: a device under the first, and the other one.
struct TwoPods : JobWorld {
  TwoPods() : JobWorld(job_shape(1, 2)) {
    const auto pods = live("train-");
    REQUIRE(pods.size() == 2);
    node = text(pod(pods[0]), {"spec", "nodeName"});
    device = plugin_device(pods[0]);
    other = pods[1];
  }
  std::string node;
  std::string device;
  std::string other;
};

/// Three pods on the first three of the four devices of a node.
struct ThreeDevices : TaintWorld {
  ThreeDevices() {
    cluster.cordon("node-b", true);
    cluster.create_stateful_set("default", "t", 3, dra_pod());
    run_for(10s);
    for (const auto* name : {"t-0", "t-1", "t-2"}) REQUIRE(health(name) == "Healthy");
    cluster.cordon("node-b", false);
  }
};

template <void (OneDevice::*start)()>
std::unique_ptr<OneDevice> one_device() {
  auto world = std::make_unique<OneDevice>();
  (*world.*start)();
  return world;
}
const auto kHealthyDevice = one_device<&OneDevice::begin>;
const auto kTaintedDevice = one_device<&OneDevice::begin_tainted>;

const Event<OneDevice> kBreaks{"breaks", [](auto& world) { world.set_health(world.device, "Unhealthy", "Xid 79"); }};
const Event<OneDevice> kKubelet{"kubelet restarts", [](auto& world) { world.cluster.restart_kubelet(world.node, 5s); }};
/// Every watch begins with a list.
const Event<OneDevice> kCompaction{"compaction", [](auto& world) {
                                     world.cluster.compact();
                                     world.cluster.store().cut_watches();
                                   }};

}  // namespace

TEST_CASE("Orders that are allowed are those in which each event comes after its prerequisites") {
  CHECK(allowed_orders({{"a"}, {"b"}}) == std::vector<Places>{{0, 1}, {1, 0}});
  CHECK(allowed_orders({{"freed", {"blocked"}}, {"blocked"}, {"breaks"}}) ==
        std::vector<Places>{{1, 0, 2}, {1, 2, 0}, {2, 1, 0}});
  CHECK(allowed_orders({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}}).size() == 720);
  CHECK(way_of({{"a"}, {"b"}}, {1, 0}, 1) == "b, restart, a");
  CHECK(way_of({{"a"}, {"b"}}, {0, 1}, 0) == "a, b");
}

TEST_CASE("Whatever happens around a device that breaks, and in whatever order, it is tainted and its pod goes once") {
  const Story<OneDevice> story{
      .begin = kHealthyDevice,
      .events = {kBreaks, kKubelet, kCompaction, {"cordon", [](auto& world) { world.cluster.cordon("node-b", true); }}},
      .between = 14s,
      .rest = 4min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE("Whatever happens around a device that breaks and recovers, and in whatever order, its taint goes again") {
  const Story<OneDevice> story{
      .begin =
          [] {
            auto world = kHealthyDevice();
            world->policy().evict.reset();
            world->send_policy();
            return world;
          },
      .events = {kBreaks,
                 kCompaction,
                 {"recovers", [](auto& world) { world.set_health(world.device, "Healthy"); }, {"breaks"}}},
      .between = 130s,  // a process that ends before `after` takes what it has waited with it
      .rest = 13min};
  expect_one_end(story, {"Node node-a Untainted", "condition s-0 False"});
}

TEST_CASE("An operator's word ends the taint for the incident by each of its three means, whatever happens around it") {
  for (const auto word : {&OneDevice::delete_rule, &OneDevice::annotate_rule, &OneDevice::annotate_node}) {
    const Story<OneDevice> story{
        .begin = kTaintedDevice,
        .events = {kCompaction,
                   {"acknowledged", [word](auto& world) { (world.*word)(); }},
                   {"other words", [](auto& world) { world.set_health(world.device, "Unhealthy", "Xid 48"); }}},
        .between = 20s,
        .rest = 5min};
    expect_one_end(story, {"Node node-a Acknowledged", "Pod s-0 NoEvictionConfigured", "condition s-0 True"});
  }
}

TEST_CASE("A pod that a budget has blocked goes once it is free, in whatever order") {
  const Story<OneDevice> story{
      .begin = kHealthyDevice,
      .events = {kBreaks,
                 kCompaction,
                 {"blocked",
                  [](auto& world) {
                    world.cluster.add_budget(
                        {.name = "all", .match_labels = {{"app", "s"}}, .min_available = 1, .max_unavailable = {}});
                  }},
                 {"freed",
                  [](auto& world) { (void)world.cluster.kubectl_delete(Res::Budgets, "default", "all"); },
                  {"blocked"}}},
      .between = 50s,
      .rest = 15min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE("A node that comes back with its bad device keeps the taint, and well it is as one that has rebooted") {
  for (const bool is_bad : {true, false}) {
    Story<OneDevice> story{
        .begin = kTaintedDevice,
        .events = {kCompaction,
                   {"goes", [](auto& world) { world.cluster.remove_node(world.node); }},
                   {"comes",
                    [](auto& world) {
                      world.cluster.add_node(
                          {world.node, {{TaintWorld::kResource, 4}}, {{TaintWorld::kDriver, 4}}, {}});
                    },
                    {"goes"}}},
        .between = 40s,
        .rest = 10min};
    if (is_bad) story.events.push_back({"breaks", kBreaks.befall, {"comes"}});
    expect_one_end(story, is_bad
                              ? Sentences{"Node node-a Tainted", "Pod s-0 NoEvictionConfigured", "condition s-0 True",
                                          "rule gpu.example.com/node-a/gpu-0 NoSchedule"}
                              : Sentences{"Node node-a OnProbation", "Node node-a Untainted", "condition s-0 False"});
  }
}

TEST_CASE("A Job that loses one pod to hardware and one by itself gets one retry back, in whatever order") {
  const Story<TwoPods> story{
      .begin = [] { return std::make_unique<TwoPods>(); },
      .events = {{"breaks",
                  [](auto& world) { world.cluster.set_device_health(world.node, world.device, "Unhealthy"); }},
                 {"fails", [](auto& world) { world.cluster.crash_pod("default", world.other, 1); }},
                 {"compaction",
                  [](auto& world) {
                    world.cluster.compact();
                    world.cluster.store().cut_watches();
                  }}},
      .between = 8s,
      .rest = 5min};
  expect_one_end(story, {"evicted default/train-*", "job train limit 2 failed 2 credits 1"});
}

TEST_CASE("The driver's condition on a claim and the kubelet's report are one incident, in whatever order they come") {
  const Story<OneDevice> story{.begin =
                                   [] {
                                     auto world = std::make_unique<OneDevice>();
                                     world->policy().match.claim_conditions = {{.type = "Ready", .status = "False"}};
                                     world->send_policy();
                                     world->begin();
                                     return world;
                                   },
                               .events = {kBreaks,
                                          {"not ready", [](auto& world) { world.set_ready("False"); }},
                                          {"ready again", [](auto& world) { world.set_ready("True"); }, {"not ready"}}},
                               .between = 15s,
                               .rest = 4min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE("A device that has failed too often stays in quarantine, whatever happens around it") {
  const Story<OneDevice> story{
      .begin =
          [] {
            auto world = std::make_unique<OneDevice>();
            world->policy().recover.quarantine_above = 1;
            world->policy().recover.healthy_for = 1min;
            world->begin_tainted();
            return world;
          },
      .events = {kKubelet,
                 {"recovers", [](auto& world) { world.set_health(world.device, "Healthy"); }},
                 {"breaks again",
                  [](auto& world) { world.set_health(world.device, "Unhealthy", "Xid 79"); },
                  {"recovers"}},
                 {"recovers again", [](auto& world) { world.set_health(world.device, "Healthy"); }, {"breaks again"}}},
      .between = 130s,
      .rest = 15min};
  expect_one_end(story, {"Node node-a Quarantined", "Node node-a Tainted", "condition s-0 False",
                         "rule gpu.example.com/node-a/gpu-0 NoSchedule"});
}

TEST_CASE("A pod that opts out and in again goes once, in whatever order") {
  const Story<OneDevice> story{
      .begin = kHealthyDevice,
      .events = {kBreaks,
                 {"opts out", [](auto& world) { world.opt_out(Res::Pods, true); }},
                 {"opts in", [](auto& world) { world.opt_out(Res::Pods, false); }, {"opts out"}}},
      .between = 15s,
      .rest = 4min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE("A pod that has opted out stays, whatever its namespace does, and in whatever order") {
  const Story<OneDevice> story{
      .begin = kHealthyDevice,
      .events = {kBreaks,
                 {"opts out", [](auto& world) { world.opt_out(Res::Pods, true); }},
                 {"namespace opts out", [](auto& world) { world.opt_out(Res::Namespaces, true); }},
                 {"namespace opts in",
                  [](auto& world) { world.opt_out(Res::Namespaces, false); },
                  {"namespace opts out"}}},
      .between = 14s,
      .rest = 4min};
  expect_one_end(story, {"Node node-a Tainted", "Pod s-0 OptedOut", "condition s-0 True",
                         "rule gpu.example.com/node-a/gpu-0 NoSchedule"});
}

TEST_CASE("A policy that observes for a while evicts as one that never did, in whatever order") {
  const Story<OneDevice> story{.begin = kHealthyDevice,
                               .events = {kBreaks,
                                          kCompaction,
                                          {"observe", [](auto& world) { world.set_mode(Mode::Observe); }},
                                          {"enforce", [](auto& world) { world.set_mode(Mode::Enforce); }, {"observe"}}},
                               .between = 15s,
                               .rest = 4min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE("A pause delays what is due and changes nothing else, in whatever order") {
  const auto sets = [](bool is_paused) {
    return [is_paused](OneDevice& world) {
      world.whole_policy().limits.paused = is_paused;
      world.send_policy();
    };
  };
  const Story<OneDevice> story{.begin = kHealthyDevice,
                               .events = {kBreaks, {"pause", sets(true)}, {"resume", sets(false), {"pause"}}},
                               .between = 35s,
                               .rest = 4min};
  expect_one_end(story, kMovedOn);
}

TEST_CASE(
    "A brake that one recovery releases holds the others no longer, in whatever order devices break and one recovers") {
  const auto sets = [](int device, std::string_view health) {
    return [device, health](ThreeDevices& world) {
      world.cluster.set_device_health("node-a", fmt::format("gpu-{}", device), health, "Xid 79");
    };
  };
  const Story<ThreeDevices> story{.begin = [] { return std::make_unique<ThreeDevices>(); },
                                  .events = {{"first breaks", sets(0, "Unhealthy")},
                                             {"second breaks", sets(1, "Unhealthy")},
                                             {"third breaks", sets(2, "Unhealthy")},
                                             {"third recovers", sets(2, "Healthy"), {"third breaks"}}},
                                  .between = 14s,
                                  .rest = 5min};
  expect_one_end(story,
                 {"Node node-a Tainted", "Node node-a Tainted", "evicted default/t-0", "evicted default/t-1",
                  "rule gpu.example.com/node-a/gpu-0 NoSchedule", "rule gpu.example.com/node-a/gpu-1 NoSchedule"});
}
