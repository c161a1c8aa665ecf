#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// One pod on a bad device, long enough for its window to have passed; `change` makes it special before it is seen.
template <class Change>
Stage one_pod(const PodSpec& spec, Change change) {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod(spec);
  change(stage, stage.pod_named(spec.name));
  stage.upsert_pod(spec.name);
  return stage;
}

std::string reason_after_ten_minutes(Stage stage, const std::string& pod) {
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  return stage.reasons(pod);
}

const PodSpec kBad{.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy};

}  // namespace

TEST_CASE("A plain pod of a ReplicaSet on a bad device is evicted") {
  auto stage = one_pod(kBad, [](Stage&, k8s::Pod&) {});
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("Pods that come back to the same node, and our own, are never evicted") {
  CHECK(reason_after_ten_minutes(
            one_pod(kBad, [](Stage&, k8s::Pod& pod) { pod.meta.annotations = {{"kubernetes.io/config.mirror", "x"}}; }),
            "web-1") == "MirrorPod");
  CHECK(reason_after_ten_minutes(one_pod(kBad, [](Stage&, k8s::Pod& pod) { pod.meta.controller.edit().kind = "Node"; }),
                                 "web-1") == "MirrorPod");
  CHECK(reason_after_ten_minutes(
            one_pod(kBad, [](Stage&, k8s::Pod& pod) { pod.meta.controller.edit().kind = "DaemonSet"; }), "web-1") ==
        "DaemonSetPod");
  CHECK(reason_after_ten_minutes(one_pod(kBad, [](Stage&, k8s::Pod& pod) { pod.kubelet_plugin = true; }), "web-1") ==
        "DriverPod");
  CHECK(reason_after_ten_minutes(one_pod(kBad,
                                         [](Stage& stage, k8s::Pod& pod) {
                                           stage.whole_policy().own_pod_uid = pod.meta.uid;
                                           stage.send_policy();
                                         }),
                                 "web-1") == "OwnPod");
}

TEST_CASE("An owner that only shares its kind's name with one that we watch is not waited for") {
  for (const auto& [kind, api] :
       {std::pair("Job", "batch.volcano.sh/v1alpha1"), std::pair("StatefulSet", "apps.kruise.io/v1beta1")}) {
    auto stage = one_pod(
        kBad, [&](Stage&, k8s::Pod& pod) { pod.meta.controller = k8s::OwnerRef{api, kind, "other", "uid-other"}; });
    CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
  }
}

TEST_CASE("Siblings of our own pod are our own") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "dhc-1", .owner = "ReplicaSet/dhc", .device = "gpu-3"});
  stage.pod({.name = "dhc-2", .owner = "ReplicaSet/dhc", .device = "gpu-0", .health = Health::Unhealthy});
  stage.whole_policy().own_pod_uid = "uid-dhc-1";
  stage.send_policy();
  CHECK(reason_after_ten_minutes(std::move(stage), "dhc-2") == "OwnPod");
}

TEST_CASE("An opt-out on the pod, its owner or its Namespace is honoured, and only the word true opts out") {
  const k8s::StringMap opted = {{"device-health.io/opt-out", "true"}};
  CHECK(reason_after_ten_minutes(one_pod(kBad, [&](Stage&, k8s::Pod& pod) { pod.meta.annotations = opted; }),
                                 "web-1") == "OptedOut");
  CHECK(reason_after_ten_minutes(one_pod(kBad,
                                         [&](Stage& stage, k8s::Pod&) {
                                           k8s::Owner owner{.kind = k8s::Kind::ReplicaSet, .meta = {}};
                                           owner.meta.ns = "default";
                                           owner.meta.name = "web";
                                           owner.meta.uid = "uid-web";
                                           owner.meta.annotations = opted;
                                           stage.put(owner);
                                         }),
                                 "web-1") == "OptedOut");
  CHECK(reason_after_ten_minutes(one_pod(kBad,
                                         [&](Stage& stage, k8s::Pod&) {
                                           k8s::Namespace ns;
                                           ns.meta.name = "default";
                                           ns.meta.uid = "uid-ns";
                                           ns.meta.annotations = opted;
                                           stage.put(ns);
                                         }),
                                 "web-1") == "OptedOut");
  auto stage =
      one_pod(kBad, [&](Stage&, k8s::Pod& pod) { pod.meta.annotations = {{"device-health.io/opt-out", "yes"}}; });
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("Pods on nodes that are NotReady or not known are left alone") {
  CHECK(reason_after_ten_minutes(one_pod(kBad, [](Stage& stage, k8s::Pod&) { stage.node("node-a", 4, 3, false); }),
                                 "web-1") == "NodeNotReady");
  Stage stage;
  stage.pod(kBad);
  CHECK(reason_after_ten_minutes(std::move(stage), "web-1") == "NodeNotReady");
}

TEST_CASE("A pod without a controller needs evict.barePods") {
  PodSpec bare = kBad;
  bare.owner.clear();
  CHECK(reason_after_ten_minutes(one_pod(bare, [](Stage&, k8s::Pod&) {}), "web-1") == "BarePod");
  auto stage = one_pod(bare, [](Stage& s, k8s::Pod&) {
    s.policy().evict->bare_pods = true;
    s.send_policy();
  });
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("A pod that somebody else deleted is not evicted") {
  auto stage = one_pod(kBad, [](Stage& s, k8s::Pod& pod) { pod.meta.deletion = s.now().wall + Seconds(30); });
  CHECK(reason_after_ten_minutes(std::move(stage), "web-1") == "AlreadyTerminating");
}

TEST_CASE("A Pending pod with a device is evicted, one that is not bound to a node is not seen") {
  PodSpec pending = kBad;
  pending.phase = k8s::PodPhase::Pending;
  auto stage = one_pod(pending, [](Stage&, k8s::Pod&) {});
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
  pending.node.clear();
  auto unbound = one_pod(pending, [](Stage&, k8s::Pod&) {});
  CHECK(unbound.run_for(minutes(10), Seconds(10)).empty());
}

TEST_CASE("A pod whose last version could not be read is not evicted until a readable one comes") {
  auto stage = one_pod(kBad, [](Stage&, k8s::Pod&) {});
  stage.settle();
  stage.deliver(k8s::Delivery(k8s::Unreadable{
      .kind = k8s::Kind::Pod, .ns = "default", .name = "web-1", .uid = "uid-web-1", .why = "status: not an object"}));
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  stage.upsert_pod("web-1");
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
}

TEST_CASE(
    "Selectors choose by node, pod and Namespace labels, and the first policy that matches wins also when it is off") {
  auto stage = one_pod(kBad, [](Stage& s, k8s::Pod& pod) {
    pod.meta.labels = {{"tier", "gold"}};
    auto off = s.policy();
    off.name = "gold-is-left-alone";
    off.mode = Mode::Off;
    off.match.pods.requirements = {{"tier", LabelSelector::Operator::In, {"gold"}}};
    s.whole_policy().policies.insert(s.whole_policy().policies.begin(), off);
    s.send_policy();
  });
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.verdicts().empty());
  stage.pod_named("web-1").meta.labels = {{"tier", "tin"}};
  stage.upsert_pod("web-1");
  CHECK(stage.run_for(minutes(10), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("A message pattern chooses which faults matter") {
  PodSpec spec = kBad;
  spec.message = "non-fatal XID 43 reported by NVML";
  auto stage = one_pod(spec, [](Stage& s, k8s::Pod&) {
    s.policy().match.message = MessagePattern::compile(R"((?i)\bcritical XID [0-9]+\b)").value();
    s.send_policy();
  });
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("web-1") == "NoPolicy");
  stage.report("web-1", Health::Unhealthy, "critical XID 79 reported by NVML");
  CHECK(stage.run_for(minutes(2), Seconds(10)) == Names{"web-1"});
}

TEST_CASE("Unknown is acted on only by a policy that names it") {
  PodSpec spec = kBad;
  spec.health = Health::Unknown;
  auto stage = one_pod(spec, [](Stage&, k8s::Pod&) {});
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("web-1").empty());
  stage.policy().match.health = {Health::Unhealthy, Health::Unknown};
  stage.send_policy();
  CHECK(stage.run_for(minutes(2), Seconds(10)) == Names{"web-1"});
}

namespace {

/// A pod whose eviction has been ordered and not been answered.
struct Ordered {
  Stage stage;
  Action order;

  Ordered() {
    stage.limits().paused = true;
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(Seconds(120));
    stage.limits().paused = false;
    stage.send_policy();
    take_order();
  }

  void take_order() {
    const auto actions = stage.turn();
    REQUIRE(evicted(actions) == Names{"web-1"});
    CHECK_FALSE(stage.recalls());
    order = *std::ranges::find_if(
        actions, [](const Action& action) { return std::holds_alternative<eviction::EvictPod>(action); });
  }

  void annotate_pod(const std::string& key) {
    stage.pod_named("web-1").meta.annotations = {{key, "true"}};
    stage.upsert_pod("web-1");
  }
};

}  // namespace

TEST_CASE("An eviction on its way that would not be ordered any more is recalled, once, and not sent again") {
  Ordered ordered;
  auto& stage = ordered.stage;
  SUBCASE("the pod has opted out") { ordered.annotate_pod("device-health.io/opt-out"); }
  SUBCASE("its owner has opted out") {
    k8s::Owner owner;
    owner.kind = k8s::Kind::ReplicaSet;
    owner.meta.ns = "default";
    owner.meta.name = "web";
    owner.meta.uid = "uid-web";
    owner.meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.put(owner);
  }
  SUBCASE("its Namespace has opted out") {
    k8s::Namespace ns;
    ns.meta.name = "default";
    ns.meta.uid = "uid-ns";
    ns.meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.put(ns);
  }
  SUBCASE("its node is NotReady") { stage.node("node-a", 4, 3, false); }
  SUBCASE("its node is about to leave") {
    auto node = stage.node_named("node-a");
    node.lifecycle = "DrainInProgress";
    stage.put(node);
  }
  SUBCASE("its node is cordoned") {
    auto node = stage.node_named("node-a");
    node.unschedulable = true;
    stage.put(node);
  }
  SUBCASE("its node is gone") { stage.remove(k8s::Kind::Node, "node-a"); }
  SUBCASE("its device is Healthy") { stage.report("web-1", Health::Healthy); }
  SUBCASE("its device is Unknown") { stage.report("web-1", Health::Unknown); }
  stage.turn();
  CHECK(stage.recalls());
  // It had begun: nothing more can be done.
  stage.turn();
  CHECK_FALSE(stage.recalls());
  stage.answer(ordered.order, fail(ErrorKind::Cancelled, "not sent"));
  CHECK(evicted(stage.turn()).empty());
  CHECK_FALSE(stage.recalls());
}

TEST_CASE("An eviction on its way is not recalled for what does not concern it") {
  Ordered ordered;
  auto& stage = ordered.stage;
  SUBCASE("another annotation") { ordered.annotate_pod("example.com/opt-out"); }
  SUBCASE("another node is NotReady") { stage.node("node-b", 4, 4, false); }
  SUBCASE("another pod has opted out") {
    stage.pod({.name = "web-2", .device = "gpu-1", .health = Health::Unhealthy}).meta.annotations = {
        {"device-health.io/opt-out", "true"}};
    stage.upsert_pod("web-2");
  }
  stage.turn();
  CHECK_FALSE(stage.recalls());
}

TEST_CASE("An eviction that was recalled, ordered again and revoked again is recalled again") {
  Ordered ordered;
  auto& stage = ordered.stage;
  for (int round = 0; round < 3; ++round) {
    ordered.annotate_pod("device-health.io/opt-out");
    stage.turn();
    CHECK(stage.recalls());
    stage.answer(ordered.order, fail(ErrorKind::Cancelled, "not sent"));
    CHECK(evicted(stage.turn()).empty());
    ordered.annotate_pod("example.com/none");
    ordered.take_order();
  }
}

}  // namespace dhc::test
