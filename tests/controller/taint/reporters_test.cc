// Whose word a device's Healthy is: of several pods that may report on it, of one whose start its Unhealthy outlives,
// after it was taken back, and with the node's clock wrong.
#include "domain/cluster/reporters.h"

#include <doctest/doctest.h>

#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr Millis kBelievedAfter = minutes(10) + kDriverSettle;

/// Tainted, and held by a pod that is not evicted; the driver has run since before that.
Stage tainted_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  return stage;
}

void pass(Stage& stage, Millis by) {
  stage.advance(by);
  stage.settle();
}

/// Its Healthy ends the incident, and the hold has no part in that.
bool recovers(Stage& stage) {
  stage.report("train-1", Health::Healthy);
  stage.run_for(kBelievedAfter + Seconds(2), Seconds(1));
  return stage.rule() == nullptr && stage.verdict("node-a", Reason::OnProbation) == nullptr;
}

/// A pod with a plugin's device that was called bad before its plugin began anew, and still is.
Stage plugin_stage(std::int64_t allocatable) {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, allocatable);
  put_driver(stage, stage.now().wall - hours(1), {.folders = {"device-plugins"}});
  stage.pod({.name = "p-0", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(70));
  REQUIRE(count_of_conditions(stage, true) == 1);
  put_driver(stage, stage.now().wall, {.folders = {"device-plugins"}});
  stage.settle();
  return stage;
}

/// With so many of its four devices allocatable.
void put_node_of(Stage& stage, const std::string& resource, std::int64_t allocatable) {
  stage.node("node-a", 4);
  auto node = stage.node_named("node-a");
  node.capacity = {{resource, 4}};
  node.allocatable = {{resource, allocatable}};
  stage.put(node);
}

}  // namespace

TEST_CASE("AMD's Healthy is no evidence once its metrics exporter has begun anew or gone, and another vendor's is") {
  for (const std::string resource : {"amd.com/gpu", "nvidia.com/gpu"}) {
    for (const std::string what : {"is asked to go", "fails", "begins anew"}) {
      CAPTURE(resource);
      CAPTURE(what);
      Stage stage;
      stage.policy().match.resources = {resource};
      stage.policy().evict.reset();
      stage.send_policy();
      put_node_of(stage, resource, 3);
      put_driver(stage, stage.now().wall - hours(1), {.folders = {"device-plugins"}});
      const DriverPod exporter = {
          .name = "exporter-1", .folders = {std::string(k8s::kAmdExporterFolder)}, .owner_uid = "uid-exporter"};
      put_driver(stage, stage.now().wall - hours(1), exporter);
      stage.pod({.name = "p-0", .device = "gpu-0", .health = Health::Unhealthy});
      auto& pod = stage.pod_named("p-0");
      pod.requests = {{resource, 1}};
      pod.allocated[0].name = resource;
      stage.upsert_pod("p-0");
      stage.run_for(Seconds(70));
      REQUIRE(count_of_conditions(stage, true) == 1);
      if (what == "fails") {
        auto failed = exporter;
        failed.phase = k8s::PodPhase::Failed;
        put_driver(stage, stage.now().wall - hours(1), failed);
      } else if (what == "is asked to go") {
        auto going = stage.pod_named("exporter-1");
        going.meta.deletion = stage.now().wall;
        stage.put(going);
        stage.settle();
        stage.remove_pod("exporter-1");
      } else {
        put_driver(stage, stage.now().wall, exporter);
      }
      stage.settle();
      put_node_of(stage, resource, 4);
      stage.report("p-0", Health::Healthy);
      stage.run_for(minutes(20), Seconds(5));
      CHECK((count_of_conditions(stage, false) == 0) == (resource == "amd.com/gpu"));
    }
  }
}

TEST_CASE("An Unhealthy that outlives a driver's start by three minutes is its own word, a millisecond less is not") {
  for (const auto less : {Millis(0), Millis(1)}) {
    CAPTURE(less.count());
    auto stage = tainted_stage();
    put_driver(stage, stage.now().wall);
    stage.settle();
    pass(stage, kOwnWord - less);
    CHECK(recovers(stage) == (less == Millis(0)));
  }
}

TEST_CASE("What cannot be told from a stale word does not outlive a driver's start") {
  auto stage = tainted_stage();
  put_driver(stage, stage.now().wall);
  stage.settle();
  SUBCASE("the node is not ready for a while") {
    pass(stage, minutes(2));
    stage.node("node-a", 0, {}, false);
    pass(stage, Seconds(10));
    stage.node("node-a", 0);
    pass(stage, minutes(2));
  }
  SUBCASE("the watch of pods says nothing") {
    pass(stage, minutes(2));
    stage.silence(k8s::Kind::Pod);
    stage.run_for(minutes(2), Seconds(10));
    stage.speak(k8s::Kind::Pod);
  }
  SUBCASE("it reads Unknown in between") {
    pass(stage, minutes(2));
    stage.report("train-1", Health::Unknown);
    pass(stage, Seconds(1));
    stage.report("train-1", Health::Healthy);
    pass(stage, minutes(2));
  }
  SUBCASE("it begins anew again") {
    pass(stage, minutes(2));
    put_driver(stage, stage.now().wall);
    pass(stage, minutes(2));
  }
  SUBCASE("a boot comes between") {
    pass(stage, minutes(2));
    boot(stage, "boot-2");
    stage.report("train-1", Health::Healthy);
    pass(stage, Seconds(10));
    put_driver(stage, stage.now().wall);
    stage.settle();
  }
  CHECK_FALSE(recovers(stage));
}

TEST_CASE("A plugin's Unhealthy outlives its start only where the kubelet offers other devices of it") {
  for (const std::int64_t allocatable : {3, 0}) {
    CAPTURE(allocatable);
    auto stage = plugin_stage(allocatable);
    pass(stage, kOwnWord);
    stage.report("p-0", Health::Healthy);
    stage.run_for(kBelievedAfter + Seconds(2), Seconds(1));
    CHECK((count_of_conditions(stage, false) == 1) == (allocatable > 0));
  }
}

TEST_CASE("Another plugin's pod that crashes every five minutes keeps no device from recovering") {
  auto stage = tainted_stage();
  const DriverPod other{.name = "other"};
  for (int i = 0; i < 6; ++i) {
    put_driver(stage, stage.now().wall, other);
    stage.run_for(Seconds(310), Seconds(10));
  }
  stage.report("train-1", Health::Healthy);
  for (int i = 0; i < 3; ++i) {
    stage.run_for(Seconds(310), Seconds(10));
    put_driver(stage, stage.now().wall, other);
  }
  stage.run_for(Seconds(2));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) == nullptr);
}

TEST_CASE("A pod that begins again and again does not extend the hold, while its device reads Healthy") {
  auto stage = tainted_stage();
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.settle();
  stage.run_for(hours(1));
  for (int i = 0; i < 23 * 6; ++i) {
    stage.run_for(minutes(10), minutes(5));
    put_driver(stage, stage.now().wall);
  }
  stage.run_for(minutes(1));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) != nullptr);
}

TEST_CASE("A driver that has taken its word back before it begins anew has forgotten nothing") {
  for (const auto late : {Millis(0), Millis(1)}) {
    for (const bool restart : {false, true}) {
      CAPTURE(late.count());
      CAPTURE(restart);
      auto stage = tainted_stage();
      stage.report("train-1", Health::Healthy);
      stage.settle();
      pass(stage, kDriverSettle);
      pass(stage, late);
      put_driver(stage, stage.now().wall);
      stage.settle();
      if (restart) stage.restart();
      stage.run_for(kBelievedAfter + Seconds(2), Seconds(1));
      CHECK((stage.rule() == nullptr) == (late == Millis(1)));
    }
  }
}

TEST_CASE("A restart of ours makes no driver begin anew on a node whose clock is ahead") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.report("train-1", Health::Healthy);
  put_driver(stage, stage.now().wall + hours(1));
  stage.run_for(minutes(2));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  stage.restart();
  stage.settle();
  SUBCASE("the same start is the same driver") { CHECK(recovers(stage)); }
  SUBCASE("another start is not") {
    put_driver(stage, stage.now().wall + hours(1));
    CHECK_FALSE(recovers(stage));
  }
  SUBCASE("nor one that we have not seen") {
    put_driver(stage, stage.now().wall + hours(1));
    stage.restart();
    CHECK_FALSE(recovers(stage));
  }
}

TEST_CASE("Which of two starts was told first makes no driver begin anew after a restart of ours") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.report("train-1", Health::Healthy);
  const DriverPod other{.name = "other"};
  put_driver(stage, stage.now().wall - hours(1));
  put_driver(stage, stage.now().wall - hours(1), other);
  stage.run_for(minutes(2));
  const auto began = stage.now().wall;
  stage.run_for(Seconds(6));
  put_driver(stage, began + Seconds(5), other);
  stage.run_for(Seconds(17));
  put_driver(stage, began);
  stage.run_for(minutes(1));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  stage.restart();
  stage.settle();
  CHECK(recovers(stage));
}

TEST_CASE("A restore of etcd that shows an older start of a driver for a while is no start of it") {
  auto stage = tainted_stage();
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(40));
  put_driver(stage, stage.now().wall - hours(30));
  stage.relist();
  stage.run_for(Seconds(10));
  put_driver(stage, stage.now().wall - hours(1) - Seconds(120));
  stage.run_for(minutes(10));
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("What we learn of the clocks makes no pod begin anew") {
  Reporters reporters;
  k8s::Pod pod;
  pod.meta.uid = "uid-driver";
  pod.meta.controller = k8s::OwnerRef{.api_version = "apps/v1", .kind = "DaemonSet", .name = "driver", .uid = "uid-ds"};
  pod.node_name = "node-a";
  pod.phase = k8s::PodPhase::Running;
  pod.plugin_folders = {"plugins"};
  pod.meta.creation = WallTime(hours(2));
  pod.last_start = WallTime(hours(1));  // the node's clock is behind
  const auto key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  const auto at = [](Millis since) {
    return Now{.mono = MonoTime(since), .wall = WallTime(std::chrono::duration_cast<WallTime::duration>(since))};
  };
  CHECK(reporters.put(pod, Millis(0), true, at(hours(2) + Seconds(5))) == "node-a");
  const auto began = reporters.latest(key, "node-a")->began;
  CHECK(reporters.put(pod, Millis(-5), true, at(hours(3))).empty());
  CHECK(reporters.latest(key, "node-a")->began == began);
}

TEST_CASE("The verdict says whether the pod that reports on a device is known") {
  for (const bool known : {true, false}) {
    CAPTURE(known);
    auto stage = gpu_stage();
    stage.policy().evict.reset();
    stage.send_policy();
    if (known) put_driver(stage, stage.now().wall - hours(1));
    stage.run_for(Seconds(70));
    stage.report("train-1", Health::Healthy);
    stage.run_for(kDriverSettle + Seconds(1));
    const auto* verdict = stage.verdict("node-a", Reason::Tainted);
    REQUIRE(verdict != nullptr);
    CHECK((verdict->message.find("is not known: its restart would not be seen") == std::string::npos) == known);
  }
}

}  // namespace dhc::test
