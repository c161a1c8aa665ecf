#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"
#include "tests/controller/eviction/gang_stage.h"
#include "tests/controller/job_retry/job_stage.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// The stage of one bad DRA device, where the policy enforces there alone.
Stage staged(EnforceOn on) {
  auto stage = gpu_stage();
  stage.policy().enforce_on = std::move(on);
  stage.send_policy();
  return stage;
}

EnforceOn share(std::int64_t percent) { return {.namespaces = {}, .nodes = {}, .percent = percent}; }
EnforceOn only_in(std::vector<std::string> namespaces) {
  return {.namespaces = std::move(namespaces), .nodes = {}, .percent = 100};
}

LabelSelector labelled(const std::string& key, const std::string& value) {
  return {.requirements = {{.key = key, .op = LabelSelector::Operator::In, .values = {value}}}};
}

EnforceOn in_pool_a() { return {.namespaces = {}, .nodes = labelled("pool", "a"), .percent = 100}; }

void label_node(Stage& stage, const std::string& name, k8s::StringMap labels) {
  stage.node_named(name).meta.labels = std::move(labels);
  stage.put(stage.node_named(name));
}

/// The lowest share in which the device is.
std::int64_t share_of(const DeviceKey& card) {
  std::int64_t percent = 0;
  while (!is_in_share(card, percent)) ++percent;
  return percent;
}

const DeviceKey kFirstGpu = DeviceKey::dra(std::string(kDriver), "node-a", "gpu-0");

}  // namespace

TEST_CASE("Where enforceOn holds in all its parts the policy taints and evicts as without it") {
  auto stage = staged({.namespaces = {"ml", "def*"}, .nodes = labelled("pool", "a"), .percent = 100});
  label_node(stage, "node-a", {{"pool", "a"}});
  stage.run_for(minutes(3));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
}

TEST_CASE("Where one part of enforceOn does not hold the policy observes, counts and says which") {
  std::string why;
  EnforceOn on{.namespaces = {"default"}, .nodes = labelled("pool", "a"), .percent = 100};
  k8s::StringMap labels = {{"pool", "a"}};
  SUBCASE("namespace") {
    on.namespaces = {"ml", "team-*"};
    why = "the pod is in none of its namespaces (ml, team-*)";
  }
  SUBCASE("node") {
    labels = {{"pool", "b"}};
    why = "its nodeSelector does not select the node";
  }
  SUBCASE("share") {
    on.percent = share_of(kFirstGpu) - 1;
    why = fmt::format("the device is not among its {}%", on.percent);
  }
  auto stage = staged(on);
  label_node(stage, "node-a", labels);
  stage.run_for(minutes(5));
  CHECK(deeds(stage).empty());
  CHECK(stage.conditions().empty());
  const auto* would = stage.verdict("train-1", Reason::WouldEvict);
  REQUIRE(would != nullptr);
  CHECK(would->mode == "observe");
  CHECK(would->message == "policy p observes here by enforceOn: " + why);
  const auto* taint = stage.verdict("node-a", Reason::WouldTaint);
  REQUIRE(taint != nullptr);
  CHECK(taint->mode == "observe");
  CHECK(taint->message.contains("observes here by enforceOn"));
}

TEST_CASE("A share takes a device in at its own percent and not one below, and the same in a new process") {
  const auto percent = share_of(kFirstGpu);
  auto stage = staged(share(percent - 1));
  stage.run_for(minutes(3));
  CHECK(deeds(stage).empty());
  stage.restart();
  stage.run_for(minutes(3));
  CHECK(deeds(stage).empty());
  stage.policy().enforce_on->percent = percent;
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
}

TEST_CASE("Partitions of one card are in a share together") {
  std::vector<k8s::SliceDevice> devices;
  for (const auto* name : {"gpu-0", "gpu-0-mig-1"}) {
    devices.push_back(
        {.name = name, .taints = {}, .attributes = {{"resource.kubernetes.io/pciBusID", "0000:01:00.0"}}});
  }
  for (const auto* name : {"gpu-2", "gpu-3"}) devices.push_back({.name = name, .taints = {}, .attributes = {}});
  const auto percent = share_of(DeviceKey::dra(std::string(kDriver), "node-a", "0000:01:00.0"));
  for (const auto given : {percent - 1, percent}) {
    CAPTURE(given);
    auto stage = staged(share(given));
    publish(stage, devices);
    stage.claim("other-gpu", {"gpu-0-mig-1"}, "train-2");
    stage.pod({.name = "train-2", .owner = "Job/other", .health = Health::Unhealthy, .claim = "other-gpu"});
    stage.limits().brake_at_least = 99;
    stage.limits().evictions_per_minute = 600;
    stage.send_policy();
    stage.run_for(minutes(5));
    CHECK((stage.verdict("train-1", Reason::WouldEvict) != nullptr) == (given < percent));
    CHECK((stage.verdict("train-2", Reason::WouldEvict) != nullptr) == (given < percent));
  }
}

TEST_CASE("A device whose card is not known is in no share") {
  auto stage = staged(share(99));
  stage.remove(k8s::Kind::ResourceSlice, "slice-node-a");
  stage.restart();
  stage.run_for(minutes(5));
  CHECK(deeds(stage).empty());
}

TEST_CASE("A label that comes or goes decides at once what is begun") {
  auto stage = staged(in_pool_a());
  stage.run_for(minutes(3));
  CHECK(deeds(stage).empty());
  label_node(stage, "node-a", {{"pool", "a"}});
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
}

TEST_CASE("A pod that has been told of its eviction stays when its node leaves enforceOn") {
  auto stage = staged(in_pool_a());
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  label_node(stage, "node-a", {{"pool", "a"}});
  stage.run_for(minutes(3));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  label_node(stage, "node-a", {});
  stage.run_for(minutes(30));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.verdict("train-1", Reason::WouldEvict) != nullptr);
  SUBCASE("its taint stands, and goes when the device has recovered") {
    CHECK(stage.verdict("node-a", Reason::Tainted)->mode == "enforce");
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(12));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0, delete gpu-0");
  }
  SUBCASE("a restart changes nothing") {
    stage.restart();
    stage.run_for(minutes(30));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  }
}

TEST_CASE("A taint outlives the pod for whose namespace it was made, and whoever tolerates it") {
  auto stage = staged(only_in({"default"}));
  stage.run_for(minutes(3));
  REQUIRE(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(5));
  CHECK(stage.verdict("node-a", Reason::Tainted) != nullptr);
  stage.restart();
  stage.run_for(minutes(5));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, evict train-1");
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("Who comes to hold a tainted device from elsewhere keeps nobody on it") {
  Stage stage;
  stage.policy().taint = TaintRules{.node = true, .node_at_least_devices = 1, .node_at_least_percent = 1};
  stage.policy().evict->after = minutes(5);
  stage.policy().enforce_on = only_in({"default"});
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.node("node-b", 4, 4);
  stage.pod({.name = "p", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(minutes(2));
  REQUIRE(deeds(stage) == "taint node-a");
  stage.pod({.name = "q", .device = "gpu-0", .health = Health::Unhealthy, .ns = "ml"});
  CHECK(stage.run_for(minutes(10)) == std::vector<std::string>{"p"});
}

TEST_CASE("A replica of a plugin's device is in a share with its card") {
  const auto percent = share_of(DeviceKey::plugin("node-a", std::string(kGpu), "GPU-1"));
  for (const auto given : {percent - 1, percent}) {
    Stage stage;
    stage.policy().enforce_on = share(given);
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "p", .device = "GPU-1::3", .health = Health::Unhealthy});
    const auto gone = stage.run_for(minutes(5));
    CHECK(gone.empty() == (given < percent));
  }
}

TEST_CASE("A node is tainted only for those of its bad devices for which enforceOn holds") {
  Stage stage;
  stage.policy().taint = TaintRules{.node = true};
  stage.policy().evict.reset();
  stage.policy().enforce_on = only_in({"ml"});
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4, 2);
  stage.pod({.name = "p-0", .device = "gpu-0", .health = Health::Unhealthy, .ns = "ml"});
  stage.pod({.name = "p-1", .device = "gpu-1", .health = Health::Unhealthy});
  stage.run_for(minutes(5));
  CHECK(deeds(stage).empty());
  const auto* would = stage.verdict("node-a", Reason::WouldTaint);
  REQUIRE(would != nullptr);
  CHECK(would->message.starts_with("where enforceOn holds, the node would be tainted: 2 of 4 devices"));
  stage.pod({.name = "p-2", .device = "gpu-2", .health = Health::Unhealthy, .ns = "ml"});
  stage.run_for(minutes(5));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("A Job outside enforceOn gets no retry back, alive or dead") {
  JobStage stage;
  stage.policy().enforce_on = only_in({"ml"});
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(minutes(3));
  CHECK(stage.verdict("train-0", Reason::WouldCredit) != nullptr);
  auto& pod = stage.pod_named("train-0");
  pod.phase = k8s::PodPhase::Failed;
  stage.upsert_pod("train-0");
  stage.run_for(minutes(3));
  CHECK(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
  CHECK(stage.credits().credits.empty());
  CHECK(deeds(stage).empty());
}

TEST_CASE("A gang goes only where enforceOn holds for each of its pods") {
  GangStage stage;
  stage.policy().enforce_on = in_pool_a();
  stage.send_policy();
  for (int i = 0; i < 3; ++i) label_node(stage, fmt::format("node-{}", i), {{"pool", "a"}});
  stage.run_for(minutes(5));
  CHECK(std::ranges::none_of(stage.writes(), [](const std::string& write) { return write.starts_with("evict"); }));
  CHECK(stage.verdict("w-0", Reason::WouldEvict)->message ==
        "policy p observes here by enforceOn: a pod of its gang is elsewhere");
  label_node(stage, "node-3", {{"pool", "a"}});
  stage.run_for(minutes(5));
  CHECK(std::ranges::count_if(stage.writes(), [](const std::string& write) { return write.starts_with("evict"); }) ==
        4);
}

TEST_CASE("Where the pods of a gang are counts before an incident opens") {
  GangStage stage;
  stage.policy().enforce_on = in_pool_a();
  stage.send_policy();
  for (int i = 0; i < 4; ++i) label_node(stage, fmt::format("node-{}", i), {{"pool", "a"}});
  stage.run_for(Seconds(30));
  CHECK(stage.verdict("w-0", Reason::WaitingForWindow)->mode == "enforce");
  label_node(stage, "node-3", {});
  stage.settle();
  CHECK(stage.verdict("w-0", Reason::WaitingForWindow)->mode == "observe");
}

}  // namespace dhc::test
