#include <doctest/doctest.h>

#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::PodPhase;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Nodes of four plugin devices each, under a policy that taints rejecting nodes and nothing else.
struct HoleStage : Stage {
  explicit HoleStage(const std::vector<std::string>& nodes = {"node-a"}) {
    policy().job_retry = JobRetryRules{.taints_rejecting_node = true};
    policy().evict.reset();
    send_policy();
    for (const auto& name : nodes) node(name, 4);
  }

  /// The node's kubelet rejects pods, one a second, that ask for so many devices.
  void reject(int count = 3, const std::string& on = "node-a", std::int64_t amount = 1) {
    for (int i = 0; i < count; ++i) {
      const auto name = "r-" + std::to_string(++rejected_);
      pod({.name = name, .node = on, .device = "x", .phase = PodPhase::Failed});
      auto& it = pod_named(name);
      it.allocated.clear();
      it.requests = {{std::string(kGpu), amount}};
      it.status_reason = "UnexpectedAdmissionError";
      it.meta.creation = now().wall;
      upsert_pod(name);
      run_for(Seconds(1));
    }
  }

  void untaint_by_hand(const std::string& name = "node-a") {
    auto node = node_named(name);
    node.taints.clear();
    put(node);
  }

 private:
  int rejected_ = 0;
};

}  // namespace

TEST_CASE("A node that rejects three pods within ten minutes is tainted, where the policy says so") {
  HoleStage stage;
  stage.reject(2);
  CHECK(deeds(stage).empty());
  stage.reject(1);
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.node_named("node-a").taints == std::vector<k8s::Taint>{node_taint()});
  REQUIRE(stage.verdict("node-a", Reason::Tainted) != nullptr);
  CHECK(stage.verdict("node-a", Reason::Tainted)->message ==
        "its kubelet rejects pods that ask for example.com/gpu: new ones would go there to die; the taint keeps off "
        "every new pod; no pod has come since: held for 24 h (incident 1)");
  CHECK(stage.verdict("node-a", Reason::BlackHoleNode) != nullptr);
  stage.run_for(hours(20), minutes(5));
  CHECK(deeds(stage) == "taint node-a");

  HoleStage never;
  never.policy().job_retry->taints_rejecting_node = false;
  never.send_policy();
  never.reject();
  CHECK(never.verdict("node-a", Reason::BlackHoleNode) != nullptr);
  CHECK(deeds(never).empty());
  CHECK(never.verdict("node-a", Reason::Tainted) == nullptr);
}

TEST_CASE("Pods that ask a node for more than it has are rightly rejected, and say nothing about it") {
  SUBCASE("more than there is") {
    HoleStage stage;
    stage.reject(10, "node-a", 9'999);
    CHECK(deeds(stage).empty());
    CHECK(stage.verdict("node-a", Reason::BlackHoleNode) == nullptr);
  }
  SUBCASE("more than others leave") {
    HoleStage stage({"node-a", "node-b"});
    stage.pod({.name = "pair", .node = "node-b", .device = "gpu-0"});
    stage.pod_named("pair").requests = {{std::string(kGpu), 2}};
    stage.upsert_pod("pair");
    for (const auto* name : {"a", "b", "c"}) stage.pod({.name = name, .device = std::string("gpu-") + name});
    stage.settle();
    stage.reject(10, "node-a", 2);
    CHECK(deeds(stage).empty());
    stage.reject(3, "node-a", 1);
    CHECK(deeds(stage) == "taint node-a");
  }
}

TEST_CASE("Pods that ask for more than any was ever given may be refused by the plugin, and say nothing either") {
  HoleStage stage({"node-a", "node-b"});
  stage.reject(10, "node-a", 2);
  CHECK(deeds(stage).empty());
  stage.pod({.name = "pair", .node = "node-b", .device = "gpu-0"});
  stage.pod_named("pair").requests = {{std::string(kGpu), 2}};
  stage.upsert_pod("pair");
  stage.settle();
  stage.reject(3, "node-a", 2);
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("A replacement that is bound in the same moment took nothing from the pod that was rejected before") {
  HoleStage stage({"node-a", "node-b"});
  const auto whole = [&](const std::string& name, const std::string& on, PodPhase phase) -> k8s::Pod& {
    auto& made = stage.pod({.name = name, .node = on, .device = "x", .phase = phase});
    made.allocated.clear();
    made.requests = {{std::string(kGpu), 4}};
    made.meta.creation = stage.now().wall;
    return made;
  };
  whole("runs", "node-b", PodPhase::Running);
  stage.upsert_pod("runs");
  stage.settle();
  for (int i = 0; i < 3; ++i) {
    const auto name = "w-" + std::to_string(i);
    whole(name, "node-a", PodPhase::Pending);
    stage.upsert_pod(name);
    stage.advance(Seconds(2));
    auto& rejected = stage.pod_named(name);
    rejected.phase = PodPhase::Failed;
    rejected.status_reason = "UnexpectedAdmissionError";
    stage.upsert_pod(name);
    whole("w-" + std::to_string(i + 1), "node-a", PodPhase::Pending);
    stage.upsert_pod("w-" + std::to_string(i + 1));
    stage.settle();
  }
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("A tenant's pods that ask for too much engage no brake, and another's pod leaves its bad device") {
  HoleStage stage({"node-a", "node-b", "node-c", "node-d"});
  stage.policy().job_retry->taints_rejecting_node = false;
  stage.policy().evict.emplace();
  stage.send_policy();
  stage.pod({.name = "web-1", .owner = "ReplicaSet/web", .device = "gpu-0"});
  stage.run_for(Seconds(5));
  for (const auto* node : {"node-b", "node-c", "node-d"}) stage.reject(3, node, 9'999);
  stage.report("web-1", k8s::Health::Unhealthy, "bad");
  CHECK(stage.run_for(minutes(5), Seconds(5)) == std::vector<std::string>{"web-1"});
}

TEST_CASE("What the kubelet of a node made anew rejected before does not count, and pods that waited for it do") {
  HoleStage stage;
  stage.reject(2);
  auto node = stage.node_named("node-a");
  const auto before = stage.now().wall;
  stage.remove(k8s::Kind::Node, "node-a");
  stage.run_for(Seconds(5));
  node.meta.uid = "uid-node-a-again";
  node.meta.creation = stage.now().wall;
  stage.put(node);
  stage.run_for(Seconds(5));
  stage.reject(2);
  CHECK(deeds(stage).empty());
  stage.pod({.name = "waited", .device = "x", .phase = PodPhase::Failed});
  auto& waited = stage.pod_named("waited");
  waited.allocated.clear();
  waited.status_reason = "UnexpectedAdmissionError";
  waited.meta.creation = before;
  stage.upsert_pod("waited");
  stage.run_for(Seconds(1));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("Three rejections in more than the policy's time make no rejecting node") {
  HoleStage stage;
  for (int i = 0; i < 6; ++i) {
    stage.reject(1);
    stage.run_for(minutes(5), Seconds(10));
  }
  CHECK(deeds(stage).empty());
}

TEST_CASE("In observe mode a rejecting node's taint is only spoken of") {
  for (const bool cap : {false, true}) {
    HoleStage stage;
    (cap ? stage.whole_policy().mode_cap : stage.policy().mode) = Mode::Observe;
    stage.send_policy();
    stage.reject();
    CHECK(deeds(stage).empty());
    CHECK(stage.verdict("node-a", Reason::WouldTaint) != nullptr);
  }
}

TEST_CASE("While paused no rejecting node is tainted") {
  HoleStage stage;
  stage.limits().paused = true;
  stage.send_policy();
  stage.reject();
  CHECK(deeds(stage).empty());
  stage.limits().paused = false;
  stage.send_policy();
  stage.run_for(Seconds(2));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE(
    "A rejecting node's taint goes after the hold, and one rejection on probation brings it back for twice as long") {
  HoleStage stage;
  stage.reject();
  stage.run_for(hours(24) - Seconds(30), minutes(5));
  CHECK(deeds(stage) == "taint node-a");
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  CHECK(stage.verdict("node-a", Reason::OnProbation) != nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.reject(1);
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a");
  stage.run_for(hours(47), minutes(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a");
  stage.run_for(hours(2), minutes(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a, untaint node-a");
}

TEST_CASE("Rejections of an incident that has ended open no other, however short the hold") {
  HoleStage stage;
  stage.policy().recover.hold = minutes(1);
  stage.send_policy();
  stage.reject();
  stage.run_for(minutes(8), Seconds(5));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  stage.reject(1);
  CHECK(deeds(stage) == "taint node-a, untaint node-a, taint node-a");
}

TEST_CASE("A pod that came after the last rejection and runs for healthyFor is evidence") {
  HoleStage stage;
  stage.reject();
  stage.run_for(minutes(1));
  stage.pod({.name = "before", .device = "gpu-0"}).meta.creation = stage.now().wall - hours(1);
  stage.upsert_pod("before");
  stage.run_for(minutes(15), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
  stage.pod({.name = "tolerates", .device = "gpu-1"}).meta.creation = stage.now().wall;
  stage.upsert_pod("tolerates");
  stage.run_for(minutes(9), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
  stage.run_for(minutes(2), Seconds(10));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  REQUIRE(stage.verdict("node-a", Reason::Untainted) != nullptr);
  CHECK(stage.verdict("node-a", Reason::Untainted)->message ==
        "a pod that came after the last rejection has run for 10 min");
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
}

TEST_CASE("A rejecting node whose taint an operator removes is not tainted again in that incident") {
  HoleStage stage;
  stage.reject();
  stage.untaint_by_hand();
  stage.run_for(Seconds(5));
  stage.reject();
  stage.run_for(minutes(8), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
  stage.run_for(minutes(30), Seconds(10));  // nothing is rejected for healthyFor: the incident is over
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  stage.reject();
  CHECK(deeds(stage) == "taint node-a, taint node-a");
}

TEST_CASE("The taint goes when the policy no longer asks for it") {
  HoleStage stage;
  stage.reject();
  stage.policy().job_retry->taints_rejecting_node = false;
  stage.send_policy();
  stage.run_for(Seconds(2));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
  CHECK(stage.node_named("node-a").taints.empty());
}

TEST_CASE("A node that rejects pods is no card, and never quarantined: its taint goes after the hold") {
  HoleStage stage;
  stage.policy().taint = TaintRules{.node = true};
  stage.policy().recover.quarantine_above = 0.5;
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.reject();
  stage.run_for(hours(25), minutes(5));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
}

TEST_CASE("A rejecting node is remembered over a restart") {
  HoleStage stage;
  stage.whole_policy().own_namespace = "device-health-system";
  stage.send_policy();
  stage.run_for(minutes(1));
  stage.reject();
  stage.run_for(minutes(1));
  stage.restart();
  stage.run_for(hours(23), minutes(5));
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.verdict("node-a", Reason::Tainted) != nullptr);
  stage.run_for(hours(2), minutes(5));
  CHECK(deeds(stage) == "taint node-a, untaint node-a");
}

TEST_CASE(
    "A rejecting node's taint is no matter of nodeAtLeast, and its untainting keeps one that bad devices ask for") {
  HoleStage stage;
  stage.policy().taint = TaintRules{.node = true};
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.reject();
  CHECK(deeds(stage) == "taint node-a");
  CHECK(stage.reasons("node-a").find("NodeBelowThreshold") == std::string::npos);
  for (const auto* number : {"0", "1"}) {
    stage.pod(
        {.name = std::string("p-") + number, .device = std::string("gpu-") + number, .health = k8s::Health::Unhealthy});
  }
  stage.run_for(minutes(2), Seconds(10));
  stage.policy().job_retry->taints_rejecting_node = false;
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(10));
  CHECK(deeds(stage) == "taint node-a");
}

TEST_CASE("When many nodes reject at once it is not the nodes: the brake holds the next taint") {
  HoleStage stage({"node-a", "node-b", "node-c", "node-d"});
  stage.reject(3, "node-a");
  stage.reject(3, "node-b");
  CHECK(deeds(stage) == "taint node-a, taint node-b");
  stage.reject(3, "node-c");
  stage.reject(3, "node-d");
  stage.run_for(minutes(4), Seconds(10));
  CHECK(deeds(stage) == "taint node-a, taint node-b");
  REQUIRE(stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr);
  CHECK(
      stage.verdict("example.com/gpu", Reason::BrakeEngaged)->message ==
      "4 of 4 nodes with example.com/gpu reject the pods that they are given: evictions, credits and new taints there "
      "stop; released when at most 2 are; half-open from 2026-11-20T12:30:08Z");
  stage.run_for(minutes(7), Seconds(10));  // and nothing was rejected within blackHole.within
  CHECK(stage.verdict("example.com/gpu", Reason::BrakeEngaged) == nullptr);
  CHECK(deeds(stage) == "taint node-a, taint node-b");
  stage.reject(3, "node-c");
  CHECK(deeds(stage) == "taint node-a, taint node-b, taint node-c");
}

}  // namespace dhc::test
