#include "domain/findings/affected_pod.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/findings/match_device.h"

namespace dhc {

namespace {

using k8s::Health;
using std::chrono::hours;

constexpr auto kGpuResource = "example.com/gpu";

Now moment_now(Millis since) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + since, .wall = noon + since};
}

DeviceKey plugin_gpu(const std::string& id = "gpu-0") { return DeviceKey::plugin("node-a", kGpuResource, id); }

k8s::Pod holder(const std::string& name, Health health, std::string device = "gpu-0") {
  k8s::Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.labels = {{"app", "web"}};
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.requests = {{kGpuResource, 1}};
  pod.allocated = {{kGpuResource, {{std::move(device), health, ""}}}};
  return pod;
}

DevicePolicy rules_named(std::string name, Mode mode = Mode::Enforce) {
  return DevicePolicy{.name = std::move(name), .mode = mode, .after = Seconds(60)};
}

Policy policy_of(std::vector<DevicePolicy> rules) {
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.policies = std::move(rules);
  return policy;
}

void show(World& world, k8s::Object object, Millis at) {
  world.apply(k8s::Upsert{std::move(object)}, moment_now(at));
  world.refresh(moment_now(at));
}

LabelSelector exists(std::string key) {
  return {.requirements = {{.key = std::move(key), .op = LabelSelector::Operator::Exists, .values = {}}}};
}

}  // namespace

TEST_CASE("A bad device affects its pod at once, and opens an incident when it has been bad for after") {
  World world;
  show(world, holder("a", Health::Unhealthy), Millis(0));
  const auto policy = policy_of({rules_named("p")});
  for (const auto& [at, open] :
       {std::pair(Millis(0), false), std::pair(Seconds(60) - Millis(1), false), std::pair(Millis(Seconds(60)), true)}) {
    const auto found = find_affected_pods(world, policy, moment_now(at));
    REQUIRE(found.size() == 1);
    CHECK(found[0].key == plugin_gpu());
    CHECK(found[0].pod().meta.name == "a");
    CHECK(found[0].policy == &policy.policies.front());
    CHECK(found[0].since == moment_of(moment_now(Millis(0))));
    CHECK(found[0].opens_at == moment_now(Seconds(60)).mono);
    CHECK(found[0].open == open);
    CHECK(!found[0].unknown_now);
  }
}

TEST_CASE("A pod on an Unknown device is affected only if its incident was open before") {
  for (const auto& [unknown_at, open] :
       {std::pair(Seconds(60) - Millis(1), false), std::pair(Millis(Seconds(60)), true)}) {
    World world;
    show(world, holder("a", Health::Unhealthy), Millis(0));
    show(world, holder("a", Health::Unknown), unknown_at);
    const auto policy = policy_of({rules_named("p")});
    const auto found = find_affected_pods(world, policy, moment_now(Seconds(90)));
    REQUIRE(found.size() == 1);
    CHECK(found[0].unknown_now);
    CHECK(found[0].open == open);
  }
}

TEST_CASE("Each state of a device affects its pod only where the policy names it") {
  for (const auto health : {Health::Healthy, Health::Unknown, Health::Unhealthy}) {
    World world;
    show(world, holder("a", health), Millis(0));
    for (const auto wanted : {Health::Unknown, Health::Unhealthy}) {
      auto rules = rules_named("p");
      rules.match.health = {wanted};
      const auto policy = policy_of({rules});
      CHECK(find_affected_pods(world, policy, moment_now(Seconds(1))).size() == (health == wanted ? 1U : 0U));
    }
  }
}

TEST_CASE("The first policy that matches wins, also when it says off, and none does more than the controller's mode") {
  World world;
  show(world, holder("a", Health::Unhealthy), Millis(0));
  auto policy = policy_of({rules_named("off", Mode::Off), rules_named("p")});
  CHECK(find_affected_pods(world, policy, moment_now(Seconds(1))).empty());
  policy.policies.front().match.resources = {"other.com/*"};
  auto found = find_affected_pods(world, policy, moment_now(Seconds(1)));
  REQUIRE(found.size() == 1);
  CHECK(found[0].policy->name == "p");
  CHECK(found[0].mode == Mode::Enforce);
  policy.mode_cap = Mode::Observe;
  found = find_affected_pods(world, policy, moment_now(Seconds(1)));
  REQUIRE(found.size() == 1);
  CHECK(found[0].mode == Mode::Observe);
  policy.mode_cap = Mode::Off;
  CHECK(find_affected_pods(world, policy, moment_now(Seconds(1))).empty());
}

TEST_CASE("The longest suffering comes first, then device and pod decide, in whatever order they came") {
  for (const bool backwards : {false, true}) {
    World world;
    std::vector<k8s::Pod> pods = {holder("b", Health::Unhealthy, "gpu-1"), holder("c", Health::Unhealthy, "gpu-0"),
                                  holder("a", Health::Unhealthy, "gpu-1")};
    if (backwards) std::ranges::reverse(pods);
    show(world, holder("z", Health::Unhealthy, "gpu-9"), Millis(0));
    for (auto& pod : pods) world.apply(k8s::Upsert{std::move(pod)}, moment_now(Seconds(1)));
    world.refresh(moment_now(Seconds(1)));
    const auto policy = policy_of({rules_named("p")});
    std::string names;
    for (const auto& one : find_affected_pods(world, policy, moment_now(Seconds(2)))) names += one.pod().meta.name;
    CHECK(names == "zcab");
  }
}

TEST_CASE("A pod that no kubelet runs is not affected") {
  for (const auto phase : {k8s::PodPhase::Pending, k8s::PodPhase::Running, k8s::PodPhase::Succeeded,
                           k8s::PodPhase::Failed, k8s::PodPhase::Unknown}) {
    World world;
    show(world, holder("a", Health::Unhealthy), Millis(0));
    auto ended = holder("a", Health::Unhealthy);
    ended.phase = phase;
    show(world, ended, Seconds(1));
    const auto policy = policy_of({rules_named("p")});
    const bool is_running = phase == k8s::PodPhase::Pending || phase == k8s::PodPhase::Running;
    CHECK(find_affected_pods(world, policy, moment_now(Seconds(2))).size() == (is_running ? 1U : 0U));
  }
}

TEST_CASE("Selectors are asked in their order, and what is not known of Namespace or node has no labels") {
  Match match;
  match.resources = {"other.com/*"};
  match.namespaces = exists("team");
  match.pods = exists("missing");
  match.nodes = exists("pool");
  World world;
  const auto pod = holder("a", Health::Unhealthy);
  const auto misfit = [&] { return selector_misfit(match, world, pod, plugin_gpu()); };
  CHECK(misfit() == MatchPart::Device);
  match.resources = {"example.com/*"};
  CHECK(misfit() == MatchPart::Namespace);
  k8s::Namespace ns;
  ns.meta.name = "default";
  ns.meta.labels = {{"team", "ml"}};
  show(world, ns, Millis(0));
  CHECK(misfit() == MatchPart::Pod);
  match.pods = exists("app");
  CHECK(misfit() == MatchPart::Node);
  k8s::Node node;
  node.meta.name = "node-a";
  node.meta.labels = {{"pool", "gold"}};
  show(world, node, Millis(0));
  CHECK(!misfit());
}

TEST_CASE("Lists of resources and drivers name devices of their own kind, and two empty lists name all") {
  const auto dra = DeviceKey::dra("example.com/gpu", "node-a", "gpu-0");
  Match match;
  CHECK(names_device(match, dra));
  CHECK(names_device(match, plugin_gpu()));
  match.resources = {"example.com/*"};
  CHECK(!names_device(match, dra));
  CHECK(names_device(match, plugin_gpu()));
  match.drivers = std::exchange(match.resources, {});
  CHECK(names_device(match, dra));
  CHECK(!names_device(match, plugin_gpu()));
}

TEST_CASE("The state is asked before the driver's words, and any words fit a policy that names none") {
  Match match;
  CHECK(!unhealthy_misfit(match, "anything"));
  match.message = *MessagePattern::compile("Xid (48|79)");
  CHECK(unhealthy_misfit(match, "Xid 13") == MatchPart::Message);
  CHECK(!unhealthy_misfit(match, "GPU: Xid 79, off the bus"));
  match.health = {Health::Unknown};
  CHECK(unhealthy_misfit(match, "Xid 13") == MatchPart::Health);
}

TEST_CASE("Which policies mean a device is told one by one, whatever its state") {
  World world;
  const auto pod = holder("a", Health::Healthy);
  auto policy = policy_of({rules_named("other"), rules_named("words"), rules_named("all", Mode::Observe)});
  policy.policies[0].match.resources = {"other.com/*"};
  policy.policies[1].match.message = *MessagePattern::compile("Xid 79");
  CHECK(policy_for(world, policy, pod, plugin_gpu()) == &policy.policies[1]);
  CHECK(policy_for_unhealthy(world, policy, pod, plugin_gpu(), "Xid 79") == &policy.policies[1]);
  CHECK(policy_for_unhealthy(world, policy, pod, plugin_gpu(), "Xid 13") == &policy.policies[2]);
  CHECK(policies_for(world, policy, pod, plugin_gpu()) ==
        std::vector<const DevicePolicy*>{&policy.policies[1], &policy.policies[2]});
  CHECK(enforced(world, policy, pod, plugin_gpu()));
  policy.policies[1].mode = Mode::Observe;
  CHECK(!enforced(world, policy, pod, plugin_gpu()));
  policy.policies.resize(1);
  CHECK(policy_for(world, policy, pod, plugin_gpu()) == nullptr);
  CHECK(policy_for_unhealthy(world, policy, pod, plugin_gpu(), "") == nullptr);
}

TEST_CASE("A claim's condition counts by type and status, for its own device, and never where it is about binding") {
  const auto key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  k8s::ResourceClaim claim;
  claim.results = {{.request = "gpu", .driver = "gpu.example.com", .pool = "node-a", .device = "gpu-0"}};
  claim.devices = {{.driver = "gpu.example.com",
                    .pool = "node-a",
                    .device = "gpu-0",
                    .conditions = {{.type = "Ready", .status = "True"}, {.type = "Healthy", .status = "False"}}}};
  const std::vector<ClaimConditionMatch> wanted = {{.type = "Ready", .status = "False"},
                                                   {.type = "Healthy", .status = "False"}};
  CHECK(find_claim_condition(wanted, claim, key) == &claim.devices[0].conditions[1]);
  CHECK(find_claim_condition({{.type = "Healthy", .status = "True"}}, claim, key) == nullptr);
  CHECK(find_claim_condition(wanted, claim, DeviceKey::dra("gpu.example.com", "node-a", "gpu-1")) == nullptr);
  CHECK(find_claim_condition(wanted, claim, DeviceKey::dra("gpu.example.com", "node-b", "gpu-0")) == nullptr);
  claim.results[0].binding_conditions = {"Healthy"};
  CHECK(find_claim_condition(wanted, claim, key) == nullptr);
  claim.results.clear();
  CHECK(find_claim_condition(wanted, claim, key) == nullptr);
}

}  // namespace dhc
