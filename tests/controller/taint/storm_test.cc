// Replacements that are bound to a node with our taint, made and lost again and again.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/our_taint.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::PodPhase;
using std::chrono::minutes;

namespace {

/// node-a has our taint, node-b has not; a policy that does nothing.
struct StormStage : Stage {
  StormStage() {
    policy().evict.reset();
    send_policy();
    for (const auto* name : {"node-a", "node-b"}) {
      node(name, 4);
      auto labelled = node_named(name);
      labelled.meta.labels = {{"kubernetes.io/hostname", name}};
      if (labelled.meta.name == "node-a") labelled.taints = {node_taint()};
      put(labelled);
    }
  }

  /// A pod of the Job that only node-a may have, unless another label is meant.
  std::string make(const std::string& host = "node-a", const std::string& owner = "Job/train") {
    const auto name = fmt::format("w-{}", ++made_);
    auto& one = pod({.name = name, .node = "", .owner = owner, .device = "x", .phase = PodPhase::Pending});
    one.allocated.clear();
    one.meta.creation = now().wall;
    k8s::SchedulingTerms terms;
    if (!host.empty()) terms.node_selector = {{"kubernetes.io/hostname", host}};
    one.scheduling = k8s::Shared(std::move(terms));
    upsert_pod(name);
    return name;
  }

  /// So many pods, each made after the one before was deleted.
  void lose(int rounds, Millis every = Seconds(20), const std::string& host = "node-a") {
    for (int i = 0; i < rounds; ++i) {
      const auto name = make(host);
      run_for(every);
      remove_pod(name);
      run_for(Seconds(1));
    }
  }

  [[nodiscard]] bool rages() const { return verdict("train", Reason::ReplacementStorm) != nullptr; }
  [[nodiscard]] auto told() const {
    return std::ranges::count(events(), std::string("ReplacementStorm"), &notice::EmitEvent::reason);
  }

 private:
  int made_ = 0;
};

}  // namespace

TEST_CASE("Five replacements in ten minutes that are lost on a node with our taint are a storm, which is told once") {
  StormStage stage;
  stage.lose(4);
  CHECK_FALSE(stage.rages());
  stage.lose(1);
  REQUIRE(stage.rages());
  const auto* verdict = stage.verdict("train", Reason::ReplacementStorm);
  CHECK(verdict->subject.kind == "Job");
  CHECK(verdict->device == "node-a");
  CHECK(verdict->message ==
        "5 pods of Job default/train have ended before they ran, in 5 rounds since 2026-11-20T12:00:20Z; the last, "
        "w-5, was bound to node node-a, which has our taint: no other node would take it, and it had ended before it "
        "ran");
  stage.lose(3);
  CHECK(stage.told() == 1);
  CHECK(stage.controller().stats().lost_replacements == 8);
}

TEST_CASE("A storm is over when ten minutes have passed since the fifth round from the end") {
  StormStage stage;
  stage.lose(5, minutes(1));
  REQUIRE(stage.rages());
  const auto over_at = stage.verdict("train", Reason::ReplacementStorm)->next_at;
  REQUIRE(over_at);
  stage.run_for(std::chrono::duration_cast<Millis>(*over_at - stage.now().wall) - Millis(1));
  CHECK(stage.rages());
  stage.run_for(Millis(1));
  CHECK_FALSE(stage.rages());
}

TEST_CASE("Pods that are lost all at once are one round, however many they are") {
  StormStage stage;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) names.push_back(stage.make());
    stage.run_for(Seconds(30));
    for (const auto& name : names) stage.remove_pod(name);
    stage.run_for(Seconds(30));
  }
  CHECK_FALSE(stage.rages());
  CHECK(stage.controller().stats().lost_replacements == 40);
}

TEST_CASE("Pods that another node would have taken, that tolerate our taint, or that ran, are no storm") {
  StormStage stage;
  SUBCASE("bound to another node") { stage.lose(6, Seconds(20), "node-b"); }
  SUBCASE("bound to none") { stage.lose(6, Seconds(20), ""); }
  SUBCASE("the node has no taint") {
    auto node = stage.node_named("node-a");
    node.taints.clear();
    stage.put(node);
    stage.lose(6);
  }
  SUBCASE("it has another's") {
    auto node = stage.node_named("node-a");
    node.taints = {{"example.com/drain", "", "NoSchedule"}};
    stage.put(node);
    stage.lose(6);
  }
  SUBCASE("they tolerate it") {
    for (int i = 0; i < 6; ++i) {
      const auto name = stage.make();
      auto terms = *stage.pod_named(name).scheduling;
      terms.tolerations = {{.key = "", .value = "", .effect = "", .exists = true}};
      stage.pod_named(name).scheduling = k8s::Shared(terms);
      stage.upsert_pod(name);
      stage.run_for(Seconds(20));
      stage.remove_pod(name);
      stage.run_for(Seconds(1));
    }
  }
  SUBCASE("they ran") {
    for (int i = 0; i < 6; ++i) {
      const auto name = stage.make();
      stage.pod_named(name).node_name = "node-a";
      stage.pod_named(name).phase = PodPhase::Running;
      stage.upsert_pod(name);
      stage.run_for(Seconds(20));
      stage.remove_pod(name);
      stage.run_for(Seconds(1));
    }
  }
  CHECK_FALSE(stage.rages());
  CHECK(stage.controller().stats().lost_replacements == 0);
}

TEST_CASE("Replacements that their scheduler fails, or a kubelet rejects, are lost as well, each once") {
  StormStage stage;
  bool rejected = false;
  SUBCASE("failed before they had a node") {}
  SUBCASE("rejected") { rejected = true; }
  for (int i = 0; i < 5; ++i) {
    const auto name = stage.make();
    stage.run_for(Seconds(20));
    auto& pod = stage.pod_named(name);
    pod.phase = PodPhase::Failed;
    if (rejected) {
      pod.node_name = "node-a";
      pod.status_reason = "UnexpectedAdmissionError";
    }
    stage.upsert_pod(name);
    stage.run_for(Seconds(1));
    stage.remove_pod(name);
    stage.run_for(Seconds(1));
  }
  CHECK(stage.rages());
  CHECK(stage.controller().stats().lost_replacements == 5);
}

TEST_CASE("Each workload has its own storm") {
  StormStage stage;
  for (int i = 0; i < 8; ++i) {
    const auto name = stage.make("node-a", i % 2 == 0 ? "Job/train" : "Job/other");
    stage.run_for(Seconds(20));
    stage.remove_pod(name);
    stage.run_for(Seconds(1));
  }
  CHECK_FALSE(stage.rages());
  stage.lose(1);
  CHECK(stage.rages());
  CHECK(stage.verdict("other", Reason::ReplacementStorm) == nullptr);
}

}  // namespace dhc::test
