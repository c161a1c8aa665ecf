#include "reconcilers/shared/exclusions.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"

namespace dhc {

namespace {

using std::chrono::hours;

constexpr auto kGpus = "example.com/gpu";

Now clock_at(Millis since) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + since, .wall = noon + since};
}

void opt_out(k8s::Meta& meta, std::string value = "true") {
  meta.annotations = {{std::string(kOptOutAnnotation), std::move(value)}};
}

/// A pod that may be evicted, and all that stands around it; each test spoils one thing.
struct Eligible {
  k8s::Pod pod;
  k8s::Node node;
  k8s::Namespace ns;
  k8s::Owner owner;
  bool knows_node = true;
  bool knows_ns = true;
  bool knows_owner = true;
  bool readable = true;
  std::vector<k8s::Pod> others;
  HeldDevice held;
  Policy policy;
  std::vector<std::pair<k8s::OwnerRef, OwnerSight>> sights;

  Eligible() {
    pod.meta.ns = "default";
    pod.meta.name = "web-1";
    pod.meta.uid = "uid-web-1";
    pod.meta.controller = k8s::OwnerRef{"apps/v1", "ReplicaSet", "web", "uid-web"};
    pod.node_name = "node-a";
    pod.phase = k8s::PodPhase::Running;
    pod.requests = {{kGpus, 1}};
    node.meta.name = "node-a";
    node.ready = true;
    ns.meta.name = "default";
    owner.kind = k8s::Kind::ReplicaSet;
    owner.meta.ns = "default";
    owner.meta.name = "web";
    owner.meta.uid = "uid-web";
    held.key = DeviceKey::plugin("node-a", kGpus, "gpu-0");
    held.reported = k8s::Health::Unhealthy;
    policy.policies = {DevicePolicy{.name = "p", .evict = EvictRules{}}};
  }

  [[nodiscard]] World world() const {
    World made;
    const auto now = clock_at(Millis(0));
    if (knows_node) made.apply(k8s::Upsert{node}, now);
    if (knows_ns) made.apply(k8s::Upsert{ns}, now);
    if (knows_owner) made.apply(k8s::Upsert{owner}, now);
    for (const auto& other : others) made.apply(k8s::Upsert{other}, now);
    for (const auto& [ref, sight] : sights) (void)made.owner_sights().note(sight, pod.meta.ns, ref, sight.at, now);
    return made;
  }

  /// Of a read at this time that found an owner of a kind that is not watched.
  void read_owner(OwnerSight sight, Millis at = Millis(0)) {
    pod.meta.controller = k8s::OwnerRef{"ray.io/v1", "RayCluster", "ray", "uid-ray"};
    sight.at = clock_at(at).mono;
    sights = {{*pod.meta.controller, std::move(sight)}};
  }

  [[nodiscard]] std::optional<HoldReason> excluded() const {
    const auto around = world();
    PodRecord record;
    record.pod = pod;
    record.readable = readable;
    AffectedPod affected;
    affected.key = held.key;
    affected.record = &record;
    affected.held_device = &held;
    affected.policy = &policy.policies.front();
    const auto now = clock_at(Millis(0));
    const RequestTracker requests;
    const IncidentStore incidents;
    const Caps caps(
        {.world = around, .policy = policy, .book = incidents.caps(), .requests = requests, .asked = {}, .now = now});
    return excluded_because(affected, {.world = around,
                                       .policy = policy,
                                       .requests = requests,
                                       .brake = {},
                                       .rejecting_nodes = {},
                                       .affected_pods = {},
                                       .incidents = incidents,
                                       .node_cases = {},
                                       .coming = {},
                                       .caps = caps,
                                       .saved_revision = {},
                                       .now = now});
  }
  [[nodiscard]] std::optional<Reason> reason() const {
    const auto hold = excluded();
    return hold ? std::optional(hold->reason) : std::nullopt;
  }
};

OwnerSight found() {
  return {.state = OwnerSight::State::Found, .meta = {}, .why = {}, .at = clock_at(Millis(0)).mono};
}

}  // namespace

TEST_CASE("A controller's pod on a Ready node, of which nobody has opted out, is not excluded") {
  CHECK(!Eligible().excluded());
}

TEST_CASE("A pod whose last version could not be read is excluded before anything else is asked") {
  Eligible one;
  one.readable = false;
  opt_out(one.pod.meta);
  CHECK(one.reason() == Reason::UnreadablePod);
}

TEST_CASE("A static pod is excluded by its annotation as by its owner") {
  Eligible by_annotation;
  by_annotation.pod.meta.annotations = {{std::string(kMirrorAnnotation), ""}};
  CHECK(by_annotation.reason() == Reason::MirrorPod);
  Eligible by_owner;
  by_owner.pod.meta.controller = k8s::OwnerRef{"v1", "Node", "node-a", "uid-node-a"};
  CHECK(by_owner.reason() == Reason::MirrorPod);
}

TEST_CASE("This controller's own pod and its siblings are excluded, pods of its owner's UID elsewhere are not") {
  Eligible own;
  own.policy.own_pod_uid = "uid-web-1";
  CHECK(own.reason() == Reason::OwnPod);
  own.policy.own_pod_uid = "uid-web-2";
  CHECK(!own.reason());
  auto sibling = own.pod;
  sibling.meta.name = "web-2";
  sibling.meta.uid = "uid-web-2";
  own.others = {sibling};
  CHECK(own.reason() == Reason::OwnPod);
  own.others.front().meta.controller.edit().uid = "uid-db";
  CHECK(!own.reason());
  own.others.front().meta.controller.edit().uid = "uid-web";
  own.others.front().meta.ns = "other";
  CHECK(!own.reason());
  own.others.front().meta.ns = "default";
  own.others.front().meta.controller.reset();
  CHECK(!own.reason());
}

TEST_CASE("A driver's pod and a DaemonSet's are excluded") {
  Eligible driver;
  driver.pod.kubelet_plugin = true;
  CHECK(driver.reason() == Reason::DriverPod);
  Eligible set;
  set.pod.meta.controller = k8s::OwnerRef{"apps/v1", "DaemonSet", "agent", "uid-agent"};
  CHECK(set.reason() == Reason::DaemonSetPod);
  CHECK(set.excluded()->message == "DaemonSet agent would start it again on the same node");
}

TEST_CASE("The word true on the pod, an owner or the Namespace opts out, and no other word does") {
  for (const bool is_true : {true, false}) {
    for (const auto* value : {"True", "yes", "1", "", " true"}) {
      const std::string word = is_true ? "true" : value;
      const auto expected = is_true ? std::optional(Reason::OptedOut) : std::nullopt;
      CAPTURE(word);
      Eligible by_pod;
      opt_out(by_pod.pod.meta, word);
      CHECK(by_pod.reason() == expected);
      Eligible by_owner;
      opt_out(by_owner.owner.meta, word);
      CHECK(by_owner.reason() == expected);
      Eligible by_namespace;
      opt_out(by_namespace.ns.meta, word);
      CHECK(by_namespace.reason() == expected);
      Eligible by_read;
      auto sight = found();
      opt_out(sight.meta, word);
      by_read.read_owner(sight);
      CHECK(by_read.reason() == expected);
    }
  }
}

TEST_CASE("Who opted out is named, the nearest first") {
  Eligible one;
  opt_out(one.ns.meta);
  CHECK(one.excluded()->message == "device-health.io/opt-out: \"true\" on Namespace default");
  opt_out(one.owner.meta);
  CHECK(one.excluded()->message == "device-health.io/opt-out: \"true\" on its ReplicaSet web");
  opt_out(one.pod.meta);
  CHECK(one.excluded()->message == "device-health.io/opt-out: \"true\" on the pod");
}

TEST_CASE("A Namespace or an owner that is not known may have opted out") {
  Eligible no_namespace;
  no_namespace.knows_ns = false;
  CHECK(no_namespace.reason() == Reason::OptOutUnknown);
  Eligible no_owner;
  no_owner.knows_owner = false;
  CHECK(no_owner.reason() == Reason::OptOutUnknown);
  // What is known to have opted out needs no more knowledge.
  opt_out(no_owner.ns.meta);
  CHECK(no_owner.reason() == Reason::OptedOut);
  no_namespace.pod.meta.annotations = {{std::string(kOptOutAnnotation), "true"}};
  CHECK(no_namespace.reason() == Reason::OptedOut);
}

TEST_CASE("An owner of a kind that is not watched counts as its read found it") {
  const auto of = [](OwnerSight::State state) {
    Eligible one;
    one.read_owner({.state = state, .meta = {}, .why = "no", .at = {}});
    return one.reason();
  };
  CHECK(of(OwnerSight::State::Found) == std::nullopt);
  CHECK(of(OwnerSight::State::Absent) == std::nullopt);
  CHECK(of(OwnerSight::State::Forbidden) == Reason::OptOutUnknown);
  CHECK(of(OwnerSight::State::Failed) == Reason::OptOutUnknown);
  Eligible unread;
  unread.read_owner(found());
  unread.sights.clear();
  CHECK(unread.reason() == Reason::OptOutUnknown);
}

TEST_CASE("An owner above the owner opts out too, and a circle of owners ends") {
  Eligible one;
  one.owner.meta.controller = k8s::OwnerRef{"apps/v1", "Deployment", "web", "uid-deployment"};
  CHECK(one.reason() == Reason::OptOutUnknown);
  auto sight = found();
  one.sights = {{*one.owner.meta.controller, sight}};
  CHECK(!one.reason());
  opt_out(one.sights.front().second.meta);
  CHECK(one.reason() == Reason::OptedOut);
  one.owner.meta.controller = one.pod.meta.controller;
  CHECK(!one.reason());
}

TEST_CASE("An owner's word is too old for an eviction at five minutes, and not before") {
  Eligible one;
  one.read_owner(found());
  const auto world = one.world();
  CHECK(!owner_word_too_old(one.pod, world, clock_at(kOwnerWordAge - Millis(1))));
  const auto hold = owner_word_too_old(one.pod, world, clock_at(kOwnerWordAge));
  REQUIRE(hold);
  CHECK(hold->reason == Reason::OptOutUnknown);
  const Eligible watched;
  CHECK(!owner_word_too_old(watched.pod, watched.world(), clock_at(hours(24))));
}

TEST_CASE("Of several owners that were read the oldest word decides, in either order") {
  for (const bool lower_is_older : {true, false}) {
    Eligible one;
    const k8s::OwnerRef upper{"ray.io/v1", "RayService", "svc", "uid-svc"};
    auto lower = found();
    lower.meta.controller = upper;
    one.read_owner(lower, lower_is_older ? Millis(0) : Seconds(60));
    auto above = found();
    above.at = clock_at(lower_is_older ? Millis(Seconds(60)) : Millis(0)).mono;
    one.sights.emplace_back(upper, above);
    CHECK(!owner_word_too_old(one.pod, one.world(), clock_at(kOwnerWordAge - Millis(1))));
    const auto hold = owner_word_too_old(one.pod, one.world(), clock_at(kOwnerWordAge));
    REQUIRE(hold);
    CHECK(hold->message.starts_with(lower_is_older ? "RayCluster ray was" : "RayService svc was"));
  }
}

TEST_CASE("A node that is not known, or not Ready, can neither be believed nor obeyed") {
  Eligible unknown;
  unknown.knows_node = false;
  CHECK(unknown.reason() == Reason::NodeNotReady);
  CHECK(unknown.excluded()->message.starts_with("node node-a is not known"));
  Eligible not_ready;
  not_ready.node.ready = false;
  CHECK(not_ready.reason() == Reason::NodeNotReady);
  CHECK(not_ready.excluded()->message.starts_with("node node-a is not Ready"));
}

TEST_CASE(
    "A node that is being deleted, or that a lifecycle condition or an autoscaler's taint sends away, is left alone") {
  const auto said = [](auto change) {
    Eligible one;
    change(one.node);
    const auto hold = one.excluded();
    if (!hold) return std::string();
    CHECK(hold->reason == Reason::NodeLeaving);
    CHECK(!hold->until);
    return hold->message;
  };
  CHECK(said([](k8s::Node& node) { node.meta.deletion = clock_at(hours(1)).wall; }) ==
        "node node-a is being deleted: its pods are moved by whoever did that");
  CHECK(said([](k8s::Node& node) { node.lifecycle = "DrainInProgress"; }) ==
        "node node-a has condition DrainInProgress: its pods are moved by whoever did that");
  for (const std::string key :
       {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}) {
    for (const std::string effect : {"NoSchedule", "NoExecute"}) {
      CHECK(said([&](k8s::Node& node) { node.taints = {{"a", "b", "NoSchedule"}, {key, "1700000000", effect}}; }) ==
            "node node-a has the taint " + key + ": its pods are moved by whoever did that");
    }
    CHECK(said([&](k8s::Node& node) { node.taints = {{key, "", "PreferNoSchedule"}}; }).empty());
  }
  CHECK(said([](k8s::Node& node) {
          node.unschedulable = true;
          node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"},
                         {"DeletionCandidateOfClusterAutoscaler", "1700000000", "PreferNoSchedule"},
                         {"karpenter.sh/unregistered", "", "NoExecute"}};
        }).empty());
}

TEST_CASE("A Pending pod is excluded unless its kubelet speaks of the device or a claim gives it") {
  Eligible one;
  one.pod.phase = k8s::PodPhase::Pending;
  CHECK(!one.reason());
  one.held.reported.reset();
  CHECK(one.reason() == Reason::PendingWithoutDevice);
  one.held.claim = "default/gpu";
  CHECK(!one.reason());
  one.held.claim.clear();
  one.pod.phase = k8s::PodPhase::Running;
  CHECK(!one.reason());
}

TEST_CASE("A bare pod is excluded unless the policy evicts and says that bare pods may go") {
  Eligible one;
  one.pod.meta.controller.reset();
  CHECK(one.reason() == Reason::BarePod);
  one.policy.policies.front().evict->bare_pods = true;
  CHECK(!one.reason());
  one.policy.policies.front().evict.reset();
  CHECK(one.reason() == Reason::BarePod);
}

TEST_CASE("The exclusions are asked in their order: what the pod is, who opted out, its node, and its device") {
  Eligible one;
  one.pod.phase = k8s::PodPhase::Pending;
  one.held.reported.reset();
  one.pod.meta.controller.reset();
  one.knows_node = false;
  one.knows_ns = false;
  one.pod.kubelet_plugin = true;
  one.pod.meta.annotations = {{std::string(kMirrorAnnotation), ""}};
  CHECK(one.reason() == Reason::MirrorPod);
  one.pod.meta.annotations.clear();
  CHECK(one.reason() == Reason::DriverPod);
  one.pod.kubelet_plugin = false;
  CHECK(one.reason() == Reason::OptOutUnknown);
  one.knows_ns = true;
  CHECK(one.reason() == Reason::NodeNotReady);
  one.knows_node = true;
  one.node.lifecycle = "Drained";
  CHECK(one.reason() == Reason::NodeLeaving);
  one.node.lifecycle.clear();
  CHECK(one.reason() == Reason::PendingWithoutDevice);
  one.pod.phase = k8s::PodPhase::Running;
  CHECK(one.reason() == Reason::BarePod);
}

}  // namespace dhc
