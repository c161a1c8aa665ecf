#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A node of three devices: web-1 on the bad gpu-0, web-2 on gpu-1, and gpu-2 free or held by web-3.
Stage three_devices(bool full) {
  Stage stage;
  stage.node("node-a", 3, 2);
  stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1"});
  if (full) stage.pod({.name = "web-3", .owner = "ReplicaSet/z", .device = "gpu-2"});
  return stage;
}

void label(Stage& stage, const std::string& node, const std::string& key, const std::string& value) {
  auto object = stage.node_named(node);
  object.meta.labels = {{key, value}};
  stage.put(object);
}

template <class Change>
void schedule(Stage& stage, const std::string& pod, Change change) {
  k8s::SchedulingTerms terms;
  change(terms);
  stage.pod_named(pod).scheduling = k8s::Shared(std::move(terms));
  stage.upsert_pod(pod);
}

k8s::NodeRequirement is_in(const std::string& key, const std::string& value) {
  k8s::NodeRequirement requirement;
  requirement.key = key;
  requirement.op = k8s::NodeRequirement::Operator::In;
  requirement.values = {value};
  return requirement;
}

/// A pod that waits for a node and asks for some devices.
void pending(Stage& stage, const std::string& name, std::int64_t devices = 1) {
  auto& pod = stage.pod({.name = name, .node = {}, .owner = "ReplicaSet/p", .phase = k8s::PodPhase::Pending});
  pod.requests = {{std::string(kGpu), devices}};
  stage.upsert_pod(name);
}

/// Four DRA devices: web-1 on the bad and tainted gpu-0 by a claim of its own.
Stage dra(const std::vector<std::string>& tainted = {"gpu-0"}) {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, tainted);
  stage.claim("web-gpu", {"gpu-0"}, "web-1");
  stage.pod({.name = "web-1", .health = Health::Unhealthy, .claim = "web-gpu"});
  return stage;
}

/// Another pod with a claim of its own on a device.
void hold(Stage& stage, const std::string& pod, const std::string& device, Health health = Health::Healthy) {
  stage.claim(pod + "-gpu", {device}, pod);
  stage.pod({.name = pod, .owner = "ReplicaSet/" + pod, .health = health, .claim = pod + "-gpu"});
}

bool lacks_place(Stage& stage, const std::string& pod = "web-1") {
  return stage.verdict(pod, Reason::NoReplacementDevice) != nullptr;
}

std::string message(Stage& stage, const std::string& pod = "web-1") {
  const auto* verdict = stage.verdict(pod, Reason::NoReplacementDevice);
  return verdict == nullptr ? std::string() : verdict->message;
}

/// Two bad pods, a and b, beside two well ones on a full node, and one place on another.
Stage two_bad_and_one_place() {
  Stage stage;
  stage.limits().brake_at_least = 100;
  stage.limits().per_owner = 10;
  stage.send_policy();
  stage.node("node-a", 4, 2);
  stage.node("node-b", 1);
  stage.pod({.name = "a", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "b", .owner = "ReplicaSet/y", .device = "gpu-1", .health = Health::Unhealthy});
  stage.pod({.name = "c", .owner = "ReplicaSet/z", .device = "gpu-2"});
  stage.pod({.name = "d", .owner = "ReplicaSet/z", .device = "gpu-3"});
  return stage;
}

}  // namespace

TEST_CASE("A bad device that its pod still asks for takes no other device's place: the free one is a place") {
  auto stage = three_devices(false);
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
  CHECK_FALSE(stage.has_event("web-1", "NoReplacementDevice"));
}

TEST_CASE("On a full node the fact is said when the incident opens, and the eviction waits ten minutes from when due") {
  auto stage = three_devices(true);
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK_FALSE(lacks_place(stage));
  stage.run_for(Seconds(1));
  CHECK(stage.reasons("web-1") == "WaitingForEvictAfter NoReplacementDevice");
  CHECK(stage.has_event("web-1", "NoReplacementDevice"));
  CHECK(message(stage) ==
        "no node is known to have 1 example.com/gpu free, healthy and untainted (1 node has too few free; not judged: "
        "CPU, memory and volumes): the eviction waits for one, at most 10m from when it is due "
        "(evict.whenNoReplacement.wait)");
  CHECK(stage.run_for(minutes(15) - Millis(1), Seconds(10)).empty());
  CHECK(stage.reasons("web-1") == "NoReplacementDevice");
  CHECK(stage.verdict("web-1", Reason::NoReplacementDevice)->next_at == stage.now().wall + Millis(1));
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("What becomes free on another node is a place at once, whatever made it so") {
  SUBCASE("a plugin's device, of a pod that is gone, or one more") {
    for (const bool is_more : {false, true}) {
      CAPTURE(is_more);
      auto stage = three_devices(true);
      stage.node("node-b", 1);
      stage.pod({.name = "web-9", .node = "node-b", .owner = "ReplicaSet/v", .device = "gpu-9"});
      CHECK(stage.run_for(minutes(3)).empty());
      REQUIRE(lacks_place(stage));
      is_more ? stage.node("node-b", 2) : stage.remove_pod("web-9");
      CHECK(stage.run_for(Seconds(1)) == Names{"web-1"});
    }
  }
  SUBCASE("a driver's device, of a claim that is gone") {
    auto stage = dra();
    for (const std::string number : {"1", "2", "3"}) hold(stage, "web-" + number + "x", "gpu-" + number);
    stage.node("node-b", 0);
    stage.slice("node-b", {"gpu-9"});
    auto& claim = stage.claim("web-9-gpu", {"gpu-9"}, "web-9");
    claim.results.front().pool = "node-b";
    stage.upsert_claim("web-9-gpu");
    stage.pod({.name = "web-9", .node = "node-b", .owner = "ReplicaSet/v", .claim = "web-9-gpu"});
    CHECK(stage.run_for(minutes(3)).empty());
    REQUIRE(lacks_place(stage));
    stage.remove_pod("web-9");
    stage.remove(k8s::Kind::ResourceClaim, "web-9-gpu");
    CHECK(stage.run_for(Seconds(1)) == Names{"web-1"});
  }
}

TEST_CASE("The turn asks to be woken at the very end of the wait") {
  auto stage = three_devices(true);
  stage.run_for(minutes(7));  // no watch becomes too old before the end
  std::vector<Message> none;
  const auto turn = stage.controller().turn(none, stage.now());
  REQUIRE(turn.wake_at);
  CHECK(*turn.wake_at == stage.now().mono - minutes(7) + minutes(11));
}

TEST_CASE("A place that turns up during the wait ends it at once") {
  auto stage = three_devices(true);
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  stage.remove_pod("web-3");
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("A wait of nothing evicts at once, and the verdict says that the replacement stays Pending") {
  auto stage = three_devices(true);
  stage.policy().evict->no_replacement_wait = Millis(0);
  stage.send_policy();
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  CHECK(stage.settle() == Names{"web-1"});
  CHECK(stage.has_event("web-1", "NoReplacementDevice"));
}

TEST_CASE("then: Hold waits for a place however long that takes") {
  auto stage = three_devices(true);
  stage.policy().evict->hold_without_replacement = true;
  stage.send_policy();
  CHECK(stage.run_for(std::chrono::hours(3), minutes(1)).empty());
  CHECK(stage.reasons("web-1") == "NoReplacementDevice");
  CHECK_FALSE(stage.verdict("web-1", Reason::NoReplacementDevice)->next_at);
  CHECK(message(stage).ends_with("the pod is not evicted without one (evict.whenNoReplacement.then: Hold)"));
  stage.node("node-b", 1);
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("The wait goes on over restarts: it counts from the incident, which is written on the pod") {
  auto stage = three_devices(true);
  stage.run_for(minutes(2));
  for (int i = 0; i < 8; ++i) {
    stage.restart();
    CHECK(stage.run_for(minutes(1), Seconds(10)).empty());
  }
  stage.restart();
  CHECK(stage.run_for(minutes(1) - Millis(1), Seconds(10)).empty());
  stage.advance(Millis(1));
  CHECK(stage.run_for(Seconds(10)) == Names{"web-1"});
}

TEST_CASE("Observe mode says what an enforcing policy would wait for, and then that it would evict") {
  auto stage = three_devices(true);
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(11) - Millis(1), Seconds(10));
  CHECK(stage.reasons("web-1") == "NoReplacementDevice");
  stage.run_for(Millis(1));
  CHECK(stage.reasons("web-1") == "WouldEvict NoReplacementDevice");
}

TEST_CASE("As many devices as the pod needs must be free on one node, its own healthy ones among them") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.node("node-b", 1);
  auto& pod = stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  pod.requests = {{std::string(kGpu), 4}};
  stage.upsert_pod("web-1");
  CHECK(stage.run_for(minutes(3)).empty());
  CHECK(
      message(stage).starts_with("no node is known to have 4 example.com/gpu free, healthy and untainted (2 nodes "
                                 "have too few free;"));
  SUBCASE("four of them elsewhere") { stage.node("node-b", 4); }
  SUBCASE("three of its own and one that was free") { stage.node("node-a", 5, 4); }
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("A node that is cordoned, not Ready, going, or rejects pods is no place") {
  auto stage = three_devices(true);
  stage.node("node-b", 4);
  auto node = stage.node_named("node-b");
  SUBCASE("cordoned") { node.unschedulable = true; }
  SUBCASE("not Ready") { node.ready = false; }
  SUBCASE("being deleted") { node.meta.deletion = stage.now().wall; }
  SUBCASE("no healthy device") { node.allocatable = {{std::string(kGpu), 0}}; }
  stage.put(node);
  CHECK(stage.run_for(minutes(3)).empty());
  CHECK(lacks_place(stage));
}

TEST_CASE("A node must be accepted by the pod's selector, affinity and tolerations") {
  auto stage = three_devices(true);
  stage.node("node-b", 4);
  SUBCASE("node selector") {
    schedule(stage, "web-1", [](auto& terms) { terms.node_selector = {{"pool", "a100"}}; });
    CHECK(stage.run_for(minutes(3)).empty());
    CHECK(message(stage).find("1 node has too few free, 1 node does not accept the pod") == std::string::npos);
    CHECK(message(stage).find("2 nodes do not accept the pod") != std::string::npos);
    label(stage, "node-b", "pool", "a100");
  }
  SUBCASE("required node affinity") {
    schedule(stage, "web-1", [](auto& terms) {
      terms.has_node_terms = true;
      terms.node_terms = {{is_in("pool", "a100")}};
    });
    CHECK(stage.run_for(minutes(3)).empty());
    label(stage, "node-b", "pool", "a100");
  }
  SUBCASE("an affinity of which a term selects nothing") {
    schedule(stage, "web-1", [](auto& terms) {
      terms.has_node_terms = true;
      terms.node_terms = {k8s::NodeTerm{}};
    });
    CHECK(stage.run_for(minutes(3)).empty());
    schedule(stage, "web-1", [](auto&) {});
  }
  SUBCASE("taint") {
    auto node = stage.node_named("node-b");
    node.taints = {{"team", "b", "NoSchedule"}, {"slow", "", "PreferNoSchedule"}};
    stage.put(node);
    CHECK(stage.run_for(minutes(3)).empty());
    schedule(stage, "web-1", [](auto& terms) { terms.tolerations = {k8s::Toleration{"team", "b", "", false}}; });
  }
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("What a Pending pod will get when the pod on the bad device has gone is no place for its replacement") {
  auto stage = three_devices(false);
  pending(stage, "queued");
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(lacks_place(stage));
  stage.node("node-a", 4, 3);
  CHECK(stage.settle() == Names{"web-1"});
}

TEST_CASE("What a Pending pod will take is no place, until the scheduler has left it alone for a minute") {
  Stage stage;
  stage.node("node-a", 2, 1);
  stage.node("node-b", 1);
  stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1"});
  pending(stage, "queued");
  CHECK(stage.run_for(Seconds(120) - Millis(1)).empty());
  CHECK(lacks_place(stage));
  SUBCASE("the scheduler has other reasons to leave it alone") {
    stage.advance(Millis(1));
    CHECK(stage.settle() == Names{"web-1"});
  }
  SUBCASE("a Pending pod with a scheduling gate takes nothing") {
    schedule(stage, "queued", [](auto& terms) { terms.gated = true; });
    CHECK(stage.settle() == Names{"web-1"});
  }
  SUBCASE("one that fits nowhere takes nothing") {
    stage.pod_named("queued").requests = {{std::string(kGpu), 16}};
    stage.upsert_pod("queued");
    CHECK(stage.settle() == Names{"web-1"});
  }
  SUBCASE("bound, it holds it") {
    stage.pod({.name = "queued", .node = "node-b", .owner = "ReplicaSet/p", .device = "gpu-2"});
    CHECK(stage.run_for(minutes(2)).empty());
  }
}

TEST_CASE(
    "Of two bad pods and one place one goes, and the other waits until its replacement has come and room is left") {
  auto stage = two_bad_and_one_place();
  CHECK(stage.run_for(minutes(3)) == Names{"a"});
  CHECK(stage.reasons("b") == "NoReplacementDevice");
  // Gone, and its owner has made no other pod yet, as a Job in its back-off.
  stage.remove_pod("a");
  CHECK(stage.run_for(minutes(2)).empty());
  stage.pod({.name = "a-2", .node = "node-b", .owner = "ReplicaSet/x", .device = "gpu-9"}).meta.creation =
      stage.now().wall;
  stage.upsert_pod("a-2");
  CHECK(stage.run_for(minutes(2)).empty());
  stage.node("node-b", 2);
  CHECK(stage.settle() == Names{"b"});
}

TEST_CASE("A replacement that runs already while the evicted pod still ends takes no second place") {
  auto stage = two_bad_and_one_place();
  REQUIRE(stage.run_for(minutes(3)) == Names{"a"});
  REQUIRE(stage.pod_named("a").meta.deletion);
  stage.pod({.name = "a-2", .node = "node-b", .owner = "ReplicaSet/x", .device = "gpu-9"}).meta.creation =
      stage.now().wall;
  stage.upsert_pod("a-2");
  CHECK(stage.settle().empty());
  stage.node("node-b", 2);
  CHECK(stage.settle() == Names{"b"});
}

TEST_CASE("A free DRA device is a place although its driver says Unknown or nothing of it") {
  auto stage = dra();
  hold(stage, "web-2", "gpu-1");
  hold(stage, "web-3", "gpu-2");
  SUBCASE("nobody has ever held it") {}
  SUBCASE("Unknown was said of it when a pod held it") {
    hold(stage, "web-4", "gpu-3", Health::Unknown);
    stage.run_for(Seconds(10));
    stage.remove_pod("web-4");
    stage.remove(k8s::Kind::ResourceClaim, "web-4-gpu");
  }
  CHECK(stage.run_for(minutes(2)) == Names{"web-1"});
}

TEST_CASE("A free DRA device that is tainted, was left bad, or is of another kind is no place") {
  auto stage = dra();
  hold(stage, "web-2", "gpu-1");
  hold(stage, "web-3", "gpu-2");
  SUBCASE("tainted") { stage.slice("node-a", {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, {"gpu-0", "gpu-3"}); }
  SUBCASE("its last holder left it Unhealthy") {
    hold(stage, "web-4", "gpu-3", Health::Unhealthy);
    stage.run_for(Seconds(10));
    stage.remove_pod("web-4");
    stage.remove(k8s::Kind::ResourceClaim, "web-4-gpu");
  }
  SUBCASE("another kind") {
    k8s::ResourceSlice slice;
    slice.meta.name = "slice-node-a";
    slice.meta.uid = "uid-slice-node-a";
    slice.driver = kDriver;
    slice.pool = "node-a";
    slice.generation = 2;
    slice.node_name = "node-a";
    for (const char* name : {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}) {
      slice.devices.push_back(
          {.name = name, .taints = {}, .attributes = {{"type", name == std::string("gpu-3") ? "mig" : "gpu"}}});
    }
    slice.devices.front().taints = {{"x", "", "NoSchedule"}};
    stage.put(slice);
  }
  CHECK(stage.run_for(minutes(3)).empty());
  CHECK(lacks_place(stage));
  CHECK(message(stage).find("not judged: CPU, memory and volumes; CEL selectors") != std::string::npos);
}

TEST_CASE("A claim of several devices needs as many, and its own healthy one is free when the pod has gone") {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", {"gpu-0", "gpu-1", "gpu-2"}, {"gpu-0"});
  stage.claim("web-gpu", {"gpu-0", "gpu-1"}, "web-1");
  stage.policy().evict->untainted = true;
  stage.send_policy();
  auto& pod = stage.pod({.name = "web-1", .claim = "web-gpu"});
  pod.allocated = {{"claim:gpu",
                    {{"gpu.example.com/node-a/gpu-0", Health::Unhealthy, ""},
                     {"gpu.example.com/node-a/gpu-1", Health::Healthy, ""}}}};
  stage.upsert_pod("web-1");
  SUBCASE("two are free then") { CHECK(stage.run_for(minutes(2)) == Names{"web-1"}); }
  SUBCASE("one is not enough") {
    hold(stage, "web-2", "gpu-2");
    CHECK(stage.run_for(minutes(3)).empty());
    CHECK(lacks_place(stage));
  }
}

TEST_CASE("A Pending pod's claim takes a device of the driver that its class was given before") {
  auto stage = dra();
  hold(stage, "web-2", "gpu-1");
  hold(stage, "web-3", "gpu-2");
  const auto with_class = [&](const std::string& name, const std::vector<std::string>& devices,
                              const std::string& pod) {
    auto claim = stage.claim(name, devices, pod);
    claim.requests =
        k8s::Shared(std::vector<k8s::DeviceRequest>{{.name = "gpu", .device_class = "any-gpu", .count = 1}});
    stage.put(claim);
  };
  with_class("queued-gpu", {}, "queued");
  stage.pod(
      {.name = "queued", .node = {}, .owner = "ReplicaSet/p", .claim = "queued-gpu", .phase = k8s::PodPhase::Pending});
  stage.pod_named("queued").allocated.clear();
  stage.upsert_pod("queued");
  SUBCASE("nobody knows the class: it is not judged") { CHECK(stage.run_for(minutes(2)) == Names{"web-1"}); }
  SUBCASE("the class is known") {
    with_class("web-2-gpu", {"gpu-1"}, "web-2");
    CHECK(stage.run_for(Seconds(119)).empty());
    CHECK(lacks_place(stage));
  }
}

TEST_CASE("A pod that waits for its taint, its budget or its turn is told of the missing place beside that") {
  auto stage = three_devices(true);
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(3));
  CHECK(stage.reasons("web-1") == "Paused NoReplacementDevice");
}

TEST_CASE("Nobody is told of a missing place who is not evicted anyway") {
  auto stage = three_devices(true);
  SUBCASE("opted out") {
    stage.pod_named("web-1").meta.annotations = {{"device-health.io/opt-out", "true"}};
    stage.upsert_pod("web-1");
  }
  SUBCASE("no evict section") {
    stage.policy().evict.reset();
    stage.send_policy();
  }
  stage.run_for(minutes(3));
  CHECK_FALSE(lacks_place(stage));
}

TEST_CASE("A pod that hangs long after its grace period keeps its share of the node, as the scheduler sees it") {
  auto stage = three_devices(false);
  auto& other = stage.pod({.name = "stuck", .owner = "ReplicaSet/s", .device = "gpu-9", .health = Health::Unhealthy});
  other.meta.deletion = stage.now().wall - minutes(10);
  other.meta.deletion_grace_seconds = 30;
  stage.upsert_pod("stuck");
  stage.node("node-a", 4, 2);
  CHECK(stage.run_for(minutes(3)).empty());
  CHECK(lacks_place(stage));
}

}  // namespace dhc::test
