// What people and other tools do to our rules and taints: it is theirs, seen, and never fought over.
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

std::string name_of_rule(const TaintWorld& world, const std::string& device) {
  return text(world.rule_for(device), {"metadata", "name"});
}

Json foreign_rule(const std::string& name, const Json& selector, std::string_view effect) {
  return {{"metadata", {{"name", name}}},
          {"spec", {{"deviceSelector", selector}, {"taint", {{"key", "vendor.example.com/bad"}, {"effect", effect}}}}}};
}

Json selector_of(const std::string& device) {
  const auto first = device.find('/');
  const auto last = device.rfind('/');
  return {{"driver", device.substr(0, first)},
          {"pool", device.substr(first + 1, last - first - 1)},
          {"device", device.substr(last + 1)}};
}

/// Two plugin devices on node-a are bad and the policy taints such nodes; their pods are not evicted.
struct NodeWorld : TaintWorld {
  NodeWorld() {
    policy().taint->node = true;
    policy().evict.reset();
    whole_policy().limits.brake_percent = 90;
    send_policy();
    auto shape = plugin_pod();
    shape.node_selector = {{"kubernetes.io/hostname", "node-a"}};
    cluster.create_stateful_set("default", "t", 2, shape);
    run_for(10s);
    for (const auto& name : {"t-0", "t-1"}) cluster.set_device_health("node-a", plugin_device(name), "Unhealthy");
    // The kubelet hides bad devices from the scheduler: here its node status is late, so the taint has a use.
  }
};

}  // namespace

TEST_CASE(
    "an effect changed by an operator stays as it is: ChangedByOther, no other write, and no eviction without a "
    "taint") {
  TaintWorld world;
  world.policy().evict->after = 5min;
  world.send_policy();
  const auto device = world.start_one();
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_until_tainted(device);
  REQUIRE(world.cluster
              .kubectl_patch(Res::TaintRules, "", name_of_rule(world, device),
                             {{"spec", {{"taint", {{"effect", "None"}}}}}})
              .status == 200);
  world.run_for(1h);
  CHECK(world.effect_of(device) == "None");
  CHECK(world.says(device, "ChangedByOther"));
  CHECK(world.steps() == Words{"PATCH rule"});
  // Not even a refused apply was sent: one that the server had to refuse would be our luck, not our manners.
  int applies = 0;
  for (const auto& request : world.cluster.requests()) {
    if (request.method == k8s::Method::Get || request.target.find("/devicetaintrules/") == std::string::npos) continue;
    CHECK(request.target.find("force") == std::string::npos);
    ++applies;
  }
  CHECK(applies == 1);
}

TEST_CASE("a rule deleted by an operator is not made again in that incident, but in the next one") {
  TaintWorld world;
  const auto device = world.start_tainted();
  REQUIRE(world.cluster.kubectl_delete(Res::TaintRules, "", name_of_rule(world, device)).status == 200);
  world.run_for(2h);
  CHECK(world.rule_count() == 0);
  CHECK(world.says(device, "Acknowledged"));
  CHECK(world.steps() == Words{"PATCH rule"});
  world.set_health(device, "Healthy");
  world.run_for(30min);
  CHECK(world.rule_count() == 0);
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(2min);
  CHECK(world.effect_of(device) == "NoSchedule");
  CHECK(world.steps() == Words{"PATCH rule", "PATCH rule"});
}

TEST_CASE("a rule deleted while the controller is away, or with an apply on its way, is not made again either") {
  for (int after = 0; after < 12; ++after) {
    CAPTURE(after);
    TaintWorld world;
    world.policy().taint->device = TaintRules::Device::Staged;
    world.cluster.lags().rule_condition = 5s;
    const auto device = world.start_held();
    world.run_until_tainted(device);
    world.run_for(Seconds(after) - 1ms);
    const auto name = name_of_rule(world, device);
    world.cluster.kubectl_delete(Res::TaintRules, "", name);
    if (after % 2 == 1) {
      world.run_for(1ms);
      world.restart_controller();
    }
    world.run_for(1h);
    // Deleted before the memory was written down (5 s): a new process cannot know, and may taint once more.
    if (after % 2 == 0 || after > 6) CHECK(world.rule_count() == 0);
  }
}

TEST_CASE("somebody else's rule for the same device is enough: no rule of ours, and the pod is evicted") {
  for (const bool wide : {false, true}) {
    CAPTURE(wide);
    TaintWorld world;
    const auto device = world.start_one();
    const Json selector = wide ? Json{{"device", selector_of(device)["device"]}} : selector_of(device);
    REQUIRE(world.cluster.kubectl_create(Res::TaintRules, foreign_rule("vendor", selector, "NoSchedule")).status ==
            201);
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(10min);
    CHECK(world.steps() == Words{"evict"});
    CHECK(world.says(device, "TaintedByOther"));
    CHECK(world.rule_count() == 1);
    CHECK(world.cluster_object(Res::TaintRules, "vendor")["spec"]["taint"]["key"] == "vendor.example.com/bad");
  }
}

TEST_CASE("somebody else's rule with effect None, or for another device, is no reason to hold back ours") {
  TaintWorld world;
  const auto device = world.start_one();
  auto other = selector_of(device);
  other["device"] = "gpu-3";
  world.cluster.kubectl_create(Res::TaintRules, foreign_rule("vendor-1", selector_of(device), "None"));
  world.cluster.kubectl_create(Res::TaintRules, foreign_rule("vendor-2", other, "NoSchedule"));
  world.set_health(device, "Unhealthy", "Xid 79");
  world.run_for(10min);
  CHECK(world.steps() == Words{"PATCH rule", "evict"});
  CHECK(world.rule_count() == 3);
}

TEST_CASE("when somebody else's rule goes while the device is bad, ours takes its place") {
  TaintWorld world;
  const auto device = world.start_held();
  world.cluster.kubectl_create(Res::TaintRules, foreign_rule("vendor", selector_of(device), "NoSchedule"));
  world.run_for(10min);
  REQUIRE(world.steps().empty());
  world.cluster.kubectl_delete(Res::TaintRules, "", "vendor");
  world.run_for(2min);
  CHECK(world.effect_of(device) == "NoSchedule");
}

TEST_CASE("a rule under our name that is not ours is left alone") {
  TaintWorld world;
  const auto probe = [] {
    TaintWorld other;
    const auto device = other.start_held();
    other.run_until_tainted(device);
    return name_of_rule(other, device);
  }();
  const auto device = world.start_held();
  REQUIRE(world.cluster.kubectl_create(Res::TaintRules, foreign_rule(probe, selector_of(device), "None")).status ==
          201);
  world.run_for(30min);
  CHECK(world.steps().empty());
  CHECK(world.says(device, "ChangedByOther"));
  CHECK(world.cluster_object(Res::TaintRules, probe)["spec"]["taint"]["effect"] == "None");
}

TEST_CASE("our node taint stands beside others', goes when the devices are well, and theirs stay as they were") {
  NodeWorld world;
  const Json theirs = Json::array({Json{{"key", "a"}, {"effect", "NoSchedule"}},
                                   Json{{"key", "z"}, {"value", "v"}, {"effect", "PreferNoSchedule"}}});
  world.cluster.kubectl_patch(Res::Nodes, "", "node-a", {{"spec", {{"taints", theirs}}}});
  world.run_for(5min);
  REQUIRE(world.is_tainted("node-a"));
  CHECK_FALSE(world.is_tainted("node-b"));
  CHECK(world.taints_of("node-a").size() == 3);
  // Others come and go on the list: the place of ours changes.
  world.cluster.kubectl_patch(
      Res::Nodes, "", "node-a",
      {{"spec",
        {{"taints",
          Json::array({Json{{"key", "new"}, {"effect", "NoSchedule"}}, theirs[0],
                       Json{{"key", "device-health.io/unhealthy"}, {"value", "Unhealthy"}, {"effect", "NoSchedule"}},
                       theirs[1]})}}}});
  world.run_for(1min);
  for (const auto& name : {"t-0", "t-1"})
    world.cluster.set_device_health("node-a", world.plugin_device(name), "Healthy");
  world.run_for(30min);
  CHECK(world.taints_of("node-a") == Words{"new:NoSchedule", "a:NoSchedule", "z:PreferNoSchedule"});
  CHECK(world.steps() == Words{"PATCH node", "PATCH node"});
}

TEST_CASE("a node whose taints change all the time gets ours all the same, and nothing of others is lost") {
  NodeWorld world;
  for (int i = 0; i < 40; ++i) {
    world.cluster.cordon("node-a", i % 2 == 0);
    world.run_for(3s);
  }
  world.run_for(5min);
  CHECK(world.is_tainted("node-a"));
}

TEST_CASE("our node taint removed by an operator is an acknowledgement") {
  NodeWorld world;
  world.run_for(5min);
  REQUIRE(world.is_tainted("node-a"));
  REQUIRE(world.cluster.kubectl_patch(Res::Nodes, "", "node-a", {{"spec", {{"taints", nullptr}}}}).status == 200);
  world.run_for(2h);
  CHECK_FALSE(world.is_tainted("node-a"));
  CHECK(world.steps() == Words{"PATCH node"});
}

TEST_CASE("a state ConfigMap that an operator edits is not fought over, and that it cannot be saved is said") {
  TaintWorld world;
  const auto device = world.start_tainted();
  const auto state = world.cluster.get(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  REQUIRE(state != nullptr);
  Json data;
  for (const auto& [key, value] : (*state)["data"].items()) data[key] = "{}";
  world.cluster.kubectl_patch(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents", {{"data", data}});
  const auto before = world.write_count();
  for (int i = 0; i < 5; ++i) {
    world.set_health(device, "Healthy");
    world.run_for(2min);
    world.set_health(device, "Unhealthy", "Xid 79");
    world.run_for(2min);
  }
  CHECK(world.write_count() - before < 60);
  const auto after = world.cluster.get(Res::ConfigMaps, TaintWorld::kOwnNamespace, "device-health-incidents");
  const bool saved = (*after)["data"] != data;
  bool said = false;
  for (const auto& verdict : world.verdicts()) said = said || to_string(verdict.reason) == "StateNotSaved";
  CHECK((saved || said));
}

TEST_CASE("a workload that is bound to a node with our taint, whose pods somebody ends again and again, is a storm") {
  NodeWorld world;
  world.run_for(2min);
  REQUIRE(world.is_tainted("node-a"));
  auto shape = NodeWorld::plugin_pod();
  shape.node_selector = {{"kubernetes.io/hostname", "node-a"}};
  world.cluster.create_deployment("default", "bound", 1, shape);
  for (int round = 0; round < 6; ++round) {
    world.run_for(20s);
    for (const auto& name : world.live("bound-")) {
      REQUIRE(world.cluster.kubectl_delete(Res::Pods, "default", name).status == 200);
    }
  }
  world.run_for(5s);
  CHECK(world.says_of_pod("bound", "ReplacementStorm"));
  world.run_for(11min);
  CHECK_FALSE(world.says_of_pod("bound", "ReplacementStorm"));
}

TEST_CASE("a condition of our type that another program has taken over is left to it when the device is well") {
  TaintWorld world;
  const auto device = world.start_tainted();
  const Json condition = {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "False"}, {"reason", "Theirs"}};
  const Json status = {{"conditions", Json::array({condition})}};
  const auto answer = world.apply("/api/v1/namespaces/default/pods/s-0/status",
                                  {{"metadata", {{"name", "s-0"}}}, {"status", status}}, "another", true);
  REQUIRE(answer.status == 200);
  world.set_health(device, "Healthy");
  world.run_for(20min);
  const auto before = world.write_count();
  world.run_for(10min);
  CHECK(world.write_count() == before);
}
