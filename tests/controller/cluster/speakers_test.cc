// Who has never said anything about its devices: `ReporterNeverSpoke`; and of whose devices no kubelet says anything:
// `HealthNotReported`.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;

TEST_CASE("A driver that never speaks is told once, after a grace, until it speaks") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  hold_device(stage);
  const auto is_said = [&] { return stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke) != nullptr; };
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(!is_said());
  stage.run_for(Seconds(1));
  REQUIRE(is_said());
  CHECK(stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke)->subject.kind == "Driver");
  SUBCASE("by the kubelet") {
    stage.report("train-1", Health::Healthy);
    stage.turn();
    CHECK(!is_said());
    stage.report("train-1", Health::Unknown);
    stage.run_for(minutes(20), Seconds(10));
    CHECK(!is_said());
  }
  SUBCASE("by a taint, of any device") {
    publish_taints(stage, {.first = {}, .second = {xid("43", "None")}});
    stage.turn();
    CHECK(!is_said());
  }
  SUBCASE("nobody holds its devices any more") {
    stage.remove_pod("train-1");
    stage.turn();
    CHECK(!is_said());
  }
  SUBCASE("a policy takes it out") {
    stage.policy().mode = Mode::Off;
    stage.send_policy();
    stage.turn();
    CHECK(!is_said());
  }
}

namespace {

void put_kubelet(Stage& stage, const std::string& node, std::string_view version) {
  stage.node(node, 4);
  auto object = stage.node_named(node);
  object.kubelet_version = std::string(version);
  stage.put(object);
}

/// A pod that asks for a device, and whose status says nothing of any.
void put_unsaid(Stage& stage, const std::string& pod, const std::string& node) {
  stage.pod({.name = pod, .node = node, .device = "gpu-0"});
  stage.pod_named(pod).allocated.clear();
  stage.upsert_pod(pod);
}

[[nodiscard]] const Verdict* unreported(Stage& stage) {
  return stage.verdict(std::string(kGpu), Reason::HealthNotReported);
}

[[nodiscard]] Stage plugin_stage() {
  Stage stage;
  stage.policy().match.resources = {std::string(kGpu)};
  stage.send_policy();
  return stage;
}

}  // namespace

TEST_CASE("Where no pod's status speaks of devices the feature gate is suspected") {
  Stage stage;
  stage.send_policy();
  put_kubelet(stage, "node-a", "v1.36.0");
  publish_taints(stage, {});
  hold_device(stage);
  stage.pod_named("train-1").allocated.clear();
  stage.upsert_pod("train-1");
  const auto said = [&](Reason reason) { return stage.verdict("gpu.example.com", reason); };
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(said(Reason::HealthNotReported) == nullptr);
  stage.run_for(Seconds(1), Seconds(1));
  const auto* verdict = said(Reason::HealthNotReported);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->subject.kind == "Driver");
  CHECK(verdict->message.contains("1 now, and no pod's status says anything about one (allocatedResourcesStatus)"));
  CHECK(verdict->message.contains("no kubelet of their nodes is known to be below 1.36"));
  CHECK(verdict->message.contains("is the feature gate ResourceHealthStatus off"));
  CHECK(said(Reason::ReporterNeverSpoke) == nullptr);
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unknown, .claim = "c"});
  stage.turn();
  CHECK(said(Reason::HealthNotReported) == nullptr);
  CHECK(said(Reason::ReporterNeverSpoke) != nullptr);
}

TEST_CASE("Where no pod's status speaks of devices kubelets below 1.36 are counted, and one is named") {
  auto stage = plugin_stage();
  put_kubelet(stage, "node-a", "v1.36.0-alpha.2");
  put_kubelet(stage, "node-b", "v1.35.9+k3s1");
  put_kubelet(stage, "node-c", "v1.34.0");
  put_kubelet(stage, "node-d", "v1.33.0");  // nobody holds a device there
  put_kubelet(stage, "node-e", "unreadable");
  for (const char* node : {"a", "b", "c", "e"}) {
    put_unsaid(stage, fmt::format("web-{}", node), fmt::format("node-{}", node));
  }
  stage.run_for(minutes(10) + Seconds(1), Seconds(1));
  REQUIRE(unreported(stage) != nullptr);
  CHECK(unreported(stage)->subject.kind == "Resource");
  CHECK(unreported(stage)->message.contains(
      "2 of their 4 nodes have a kubelet below 1.36, node-b (v1.35.9+k3s1) among them: update the kubelets"));
  SUBCASE("until the kubelets are updated") {
    put_kubelet(stage, "node-b", "v1.36.1");
    stage.turn();
    REQUIRE(unreported(stage) != nullptr);
    CHECK(unreported(stage)->message.contains("1 of their 4 nodes has a kubelet below 1.36, node-c (v1.34.0): update"));
    put_kubelet(stage, "node-c", "v1.37.0");
    stage.turn();
    REQUIRE(unreported(stage) != nullptr);
    CHECK(unreported(stage)->message.contains("is the feature gate ResourceHealthStatus off"));
  }
  SUBCASE("until one reports, and for those below 1.36 still") {
    stage.pod({.name = "web-a", .node = "node-a", .device = "gpu-0"});
    stage.turn();
    REQUIRE(unreported(stage) != nullptr);
    CHECK(unreported(stage)->message.contains("no pod's status there says anything about one"));
    CHECK(unreported(stage)->message.contains("2 nodes have a kubelet below 1.36, node-b (v1.35.9+k3s1) among them"));
    stage.remove_pod("web-b");
    stage.turn();
    REQUIRE(unreported(stage) != nullptr);
    CHECK(unreported(stage)->message.contains("1 node has a kubelet below 1.36, node-c (v1.34.0): update"));
    stage.pod({.name = "web-c", .node = "node-c", .device = "gpu-0"});  // its gate is on
    stage.turn();
    CHECK(unreported(stage) == nullptr);
  }
}

TEST_CASE("A kubelet below 1.36 among others that report is told ten minutes after its first pod with a device") {
  auto stage = plugin_stage();
  put_kubelet(stage, "node-a", "v1.37.1");
  put_kubelet(stage, "node-b", "v1.35.4");
  stage.pod({.name = "web-a", .node = "node-a", .device = "gpu-0"});
  stage.run_for(minutes(20), Seconds(10));
  put_unsaid(stage, "web-b", "node-b");
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(unreported(stage) == nullptr);
  stage.run_for(Seconds(1), Seconds(1));
  REQUIRE(unreported(stage) != nullptr);
  CHECK(unreported(stage)->message.contains("1 node has a kubelet below 1.36, node-b (v1.35.4): update the kubelet"));
  SUBCASE("not where the policy is off") {
    stage.policy().mode = Mode::Off;
    stage.send_policy();
    stage.turn();
    CHECK(unreported(stage) == nullptr);
  }
  SUBCASE("nor once another pod of its node shows a report") {
    stage.pod({.name = "web-c", .node = "node-b", .device = "gpu-1"});
    stage.turn();
    CHECK(unreported(stage) == nullptr);
  }
}

TEST_CASE("A pod whose object changes all the time holds its devices without a break") {
  Stage stage;
  stage.send_policy();
  stage.node("node-a", 0);
  publish_taints(stage, {});
  hold_device(stage);
  for (int second = 0; second <= 600; second += 10) {
    stage.upsert_pod("train-1");
    stage.run_for(Seconds(10), Seconds(10));
  }
  CHECK(stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke) != nullptr);
}

TEST_CASE("Where a policy names a silent driver's taints it is told what else to do") {
  auto stage = held_device();
  stage.run_for(minutes(10) + Seconds(1), Seconds(1));
  const auto* verdict = stage.verdict("gpu.example.com", Reason::ReporterNeverSpoke);
  REQUIRE(verdict != nullptr);
  CHECK_FALSE(verdict->message.contains("name its taints"));
  CHECK(verdict->message.contains("health monitoring"));
}

TEST_CASE("A device plugin of which no pod's status speaks is told where a policy names its resource") {
  Stage stage;
  const bool is_named = [&] {
    bool named = false;
    SUBCASE("named") { named = true; }
    SUBCASE("not named") {}
    return named;
  }();
  stage.policy().match.resources = {is_named ? std::string(kGpu) : "other.example.com/*"};
  stage.send_policy();
  stage.node("node-a", 4);
  stage.pod({.name = "train-1", .device = "gpu-0"});
  auto& pod = stage.pod_named("train-1");
  pod.allocated.clear();
  pod.requests = {{.resource = std::string(kGpu), .amount = 1}};
  stage.upsert_pod("train-1");
  const auto said = [&] { return unreported(stage); };
  stage.run_for(minutes(10) - Seconds(1), Seconds(1));
  CHECK(said() == nullptr);
  stage.run_for(Seconds(2));
  CHECK((said() != nullptr) == is_named);
  if (!is_named) return;
  CHECK(said()->message.contains("ResourceHealthStatus"));
  stage.pod({.name = "train-1", .device = "gpu-0"});
  stage.run_for(Seconds(2));
  CHECK(said() == nullptr);
}

}  // namespace dhc::test
