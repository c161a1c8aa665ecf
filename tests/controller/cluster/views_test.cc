// Nothing is destroyed on a view older than its bound (invariant I17).
#include "domain/cluster/views.h"

#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "tests/controller/job_retry/job_stage.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::Kind;
using Names = std::vector<std::string>;

namespace {

Now at(Millis time) { return {.mono = MonoTime(time), .wall = {}}; }

k8s::Told word(Kind kind, Millis time, k8s::WatchWord what = k8s::WatchWord::Heard, std::string name = {}) {
  return {.kind = kind, .name = std::move(name), .word = what, .at = MonoTime(time)};
}

/// A pod on a device that has just become bad, of a ReplicaSet.
Stage bad_pod() {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.settle();
  return stage;
}

k8s::Snapshot snapshot_of(Kind kind, std::vector<k8s::Object> objects, bool went_back) {
  return {.kind = kind,
          .objects = std::move(objects),
          .served = true,
          .api_version = "resource.k8s.io/v1",
          .went_back = went_back};
}

}  // namespace

TEST_CASE("a view is too old at its bound, and not one millisecond before") {
  Views views;
  CHECK_FALSE(views.too_old(kEveryView, at(kOldestView)).has_value());  // no watch has ever spoken
  views.told(word(Kind::Pod, Seconds(10)));
  CHECK_FALSE(views.too_old(kEveryView, at(Seconds(10) + kOldestView - Millis(1))).has_value());
  const auto old = views.too_old(kEveryView, at(Seconds(10) + kOldestView));
  REQUIRE(old.has_value());
  CHECK(old->kind == Kind::Pod);
  CHECK(old->heard_at == MonoTime(Seconds(10)));
  CHECK_FALSE(views.too_old({Kind::Node, Kind::Job}, at(Seconds(10) + kOldestView)).has_value());
}

TEST_CASE("a word that comes late, or twice, makes no view older") {
  Views views;
  views.told(word(Kind::Pod, Seconds(100)));
  views.told(word(Kind::Pod, Seconds(40)));
  CHECK_FALSE(views.too_old(kEveryView, at(Seconds(100) + kOldestView - Millis(1))).has_value());
}

TEST_CASE("a view that is doubted is too old at once, until its watch speaks again") {
  Views views;
  views.told(word(Kind::Pod, Seconds(1)));
  views.told(word(Kind::Node, Seconds(1)));
  views.told(word(Kind::Node, Seconds(2), k8s::WatchWord::Doubted));
  const auto old = views.too_old(kEveryView, at(Seconds(2)));
  REQUIRE(old.has_value());
  CHECK(old->kind == Kind::Node);
  CHECK(old->doubted);
  views.told(word(Kind::Node, Seconds(3)));
  CHECK_FALSE(views.too_old(kEveryView, at(Seconds(3))).has_value());
}

TEST_CASE("two watches of one kind each have their age, and a kind that is not served has none") {
  Views views;
  views.told(word(Kind::ConfigMap, Seconds(0), k8s::WatchWord::Heard, "policy"));
  views.told(word(Kind::ConfigMap, kOldestView, k8s::WatchWord::Heard, "state"));
  CHECK(views.too_old(kEveryView, at(kOldestView)).has_value());
  views.told(word(Kind::ConfigMap, kOldestView, k8s::WatchWord::Heard, "policy"));
  views.told(word(Kind::ResourceClaim, Seconds(0)));
  CHECK(views.too_old(kEveryView, at(kOldestView)).has_value());
  views.listed(Kind::ResourceClaim, false);
  CHECK_FALSE(views.too_old(kEveryView, at(kOldestView)).has_value());
  views.listed(Kind::ResourceClaim, true);
  CHECK(views.too_old(kEveryView, at(kOldestView)).has_value());
}

TEST_CASE("each watch that an eviction rests on holds it at the bound, and lets it go with its next word") {
  for (const auto kind : {Kind::Pod, Kind::Node, Kind::Namespace, Kind::ReplicaSet, Kind::ConfigMap}) {
    CAPTURE(k8s::to_string(kind));
    Stage stage = bad_pod();
    stage.silence(kind);
    stage.policy().after = kOldestView;
    stage.send_policy();
    CHECK(stage.run_for(kOldestView).empty());
    const auto* held = stage.verdict("a", Reason::ViewTooOld);
    REQUIRE(held != nullptr);
    CHECK(held->message == std::string("the watch of ") + std::string(k8s::to_string(kind)) +
                               " has said nothing since 2026-11-20T12:00:00Z; a view older than 300 s is not acted on");
    CHECK(stage.run_for(Seconds(600)).empty());
    stage.speak(kind);
    CHECK(stage.settle() == Names{"a"});
  }
}

TEST_CASE(
    "a stream that ends and begins again asks anew about those whom it holds, and about nobody whom a brake holds") {
  for (const bool braked : {true, false}) {
    CAPTURE(braked);
    Stage stage;
    stage.limits().brake_at_least = braked ? 3 : 100;
    stage.limits().max_in_flight = 0;
    stage.policy().after = Seconds(10);
    stage.send_policy();
    stage.node("node-a", 8, 4);
    for (const auto* name : {"a", "b", "c", "d"})
      stage.pod(
          {.name = name, .owner = std::string("ReplicaSet/") + name, .device = name, .health = Health::Unhealthy});
    stage.run_for(Seconds(60));
    const auto held = braked ? Reason::Braked : Reason::TooManyInFlight;
    REQUIRE(stage.verdict("a", held) != nullptr);
    for (const auto kind : {Kind::Pod, Kind::Node, Kind::Namespace, Kind::ReplicaSet, Kind::ConfigMap, Kind::Job}) {
      CAPTURE(k8s::to_string(kind));
      const bool asks = !braked && kind != Kind::Job;
      stage.silence(kind);
      stage.deliver(k8s::Delivery(word(kind, stage.now().mono.time_since_epoch(), k8s::WatchWord::Doubted)));
      (void)stage.turn();
      CHECK(stage.controller().stats().asked == (asks ? 4 : 0));
      CHECK((stage.verdict("a", Reason::ViewTooOld) != nullptr) == asks);
      CHECK((stage.verdict("a", held) != nullptr) != asks);
      stage.speak(kind);
      (void)stage.turn();
      CHECK(stage.controller().stats().asked == (asks ? 4 : 0));
      CHECK(stage.verdict("a", held) != nullptr);
    }
  }
}

TEST_CASE("each watch that speaks of a claim's device, or of the pod's owner, holds the evictions that rest on it") {
  const auto held_device = [] {
    Stage stage;
    stage.node("node-a", 0);
    stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-0"});
    stage.claim("a-gpu", {"gpu-0"}, "a");
    stage.pod({.name = "a", .health = Health::Unhealthy, .claim = "a-gpu"});
    return stage;
  };
  const auto owned_by = [](const char* owner) {
    Stage stage;
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .owner = owner, .device = "gpu-0", .health = Health::Unhealthy});
    return stage;
  };
  for (const auto kind :
       {Kind::ResourceClaim, Kind::ResourceSlice, Kind::DeviceTaintRule, Kind::Job, Kind::StatefulSet}) {
    CAPTURE(k8s::to_string(kind));
    auto stage = kind == Kind::Job           ? owned_by("Job/train")
                 : kind == Kind::StatefulSet ? owned_by("StatefulSet/web")
                                             : held_device();
    if (kind == Kind::Job) {
      stage.job_named("train").backoff_limit = 6;
      stage.upsert_job("train");
    }
    stage.policy().after = kOldestView;
    stage.send_policy();
    stage.settle();
    stage.silence(kind);
    CHECK(stage.run_for(kOldestView + Seconds(600)).empty());
    CHECK(stage.reasons("a").contains("ViewTooOld"));
    stage.speak(kind);
    CHECK(stage.run_for(Seconds(1)) == Names{"a"});
  }
}

TEST_CASE("one millisecond before the bound a silent watch holds nothing") {
  Stage stage = bad_pod();
  stage.silence(Kind::Pod);
  stage.policy().after = kOldestView - Millis(1);
  stage.send_policy();
  CHECK(stage.run_for(kOldestView - Millis(1), kOldestView - Millis(1)) == Names{"a"});
}

TEST_CASE("a watch that the eviction does not rest on may be silent for ever") {
  for (const auto kind :
       {Kind::ResourceClaim, Kind::ResourceSlice, Kind::DeviceTaintRule, Kind::Job, Kind::StatefulSet}) {
    CAPTURE(k8s::to_string(kind));
    Stage stage = bad_pod();
    stage.silence(kind);
    stage.policy().after = std::chrono::hours(1);
    stage.send_policy();
    CHECK(stage.run_for(std::chrono::hours(1), std::chrono::minutes(1)) == Names{"a"});
  }
}

TEST_CASE("a controller that begins anew, or to lead, on a silent watch evicts nobody either") {
  Stage stage = bad_pod();
  stage.silence(Kind::Pod);
  stage.deliver(Leading{.leads = false});
  CHECK(stage.run_for(kOldestView + Seconds(120)).empty());
  CHECK(stage.controller().stats().blind);  // a standby's view has an age as well
  stage.deliver(Leading{.leads = true});
  CHECK(stage.run_for(Seconds(120)).empty());
  CHECK(stage.reasons("a") == "ViewTooOld");
  stage.speak(Kind::Pod);
  CHECK(stage.run_for(Seconds(1)) == Names{"a"});
  CHECK_FALSE(stage.controller().stats().blind);
}

TEST_CASE("while what is known of pods is doubted nobody is evicted, though the watch spoke a moment ago") {
  Stage stage = bad_pod();
  stage.silence(Kind::Pod);
  stage.deliver(k8s::Delivery(word(Kind::Pod, stage.now().mono.time_since_epoch(), k8s::WatchWord::Doubted)));
  CHECK(stage.run_for(Seconds(61)).empty());
  const auto* held = stage.verdict("a", Reason::ViewTooOld);
  REQUIRE(held != nullptr);
  CHECK(held->message == "the watch of Pod is interrupted, or what it said is not what the API server has");
  // The list: the pod had recovered.
  auto& pod = stage.pod_named("a");
  pod.allocated.front().devices.front().health = Health::Healthy;
  stage.deliver(k8s::Delivery(snapshot_of(Kind::Pod, {pod}, true)));
  stage.speak(Kind::Pod);
  CHECK(stage.run_for(Seconds(300)).empty());
}

TEST_CASE(
    "a stream that ends and is renewed makes no leader blind, however often: a watch without a word for long does") {
  Stage stage = bad_pod();
  stage.silence(Kind::Pod);
  stage.deliver(k8s::Delivery(word(Kind::Pod, stage.now().mono.time_since_epoch(), k8s::WatchWord::Doubted)));
  stage.settle();
  CHECK_FALSE(stage.controller().stats().blind);
  stage.run_for(kOldestView - Millis(1), kOldestView - Millis(1));
  CHECK_FALSE(stage.controller().stats().blind);
  stage.run_for(Millis(1));
  CHECK(stage.controller().stats().blind);
}

TEST_CASE("a plan wakes at the moment at which a watch has been silent for too long") {
  Stage stage = bad_pod();
  stage.policy().after = std::chrono::hours(1);
  stage.send_policy();
  stage.settle();
  stage.silence(Kind::Node);
  const auto edge = stage.now().mono + kOldestView;
  SUBCASE("of a leader") {}
  SUBCASE("of a standby") { stage.deliver(Leading{.leads = false}); }
  stage.run_for(kOldestView - Seconds(4), Seconds(4));
  CHECK(stage.wake_at() == edge);
  stage.advance(edge - Millis(1) - stage.now().mono);
  stage.turn();
  CHECK(stage.wake_at() == edge);
  CHECK_FALSE(stage.controller().stats().blind);
  stage.advance(Millis(1));
  stage.turn();
  CHECK(stage.controller().stats().blind);
  CHECK(stage.wake_at() > edge);
}

TEST_CASE("an eviction on its way is recalled at the moment at which a watch has been silent for too long") {
  for (const auto kind : {Kind::Pod, Kind::Node, Kind::Namespace, Kind::ReplicaSet, Kind::ConfigMap}) {
    CAPTURE(k8s::to_string(kind));
    Stage stage = bad_pod();
    stage.limits().paused = true;
    stage.send_policy();
    stage.run_for(Seconds(120));
    stage.limits().paused = false;
    stage.send_policy();
    REQUIRE(evicted(stage.turn()) == Names{"a"});
    stage.silence(kind);
    stage.advance(kOldestView - Millis(1));
    stage.turn();
    CHECK_FALSE(stage.recalls());
    stage.advance(Millis(1));
    stage.turn();
    CHECK(stage.recalls());
    stage.turn();
    CHECK_FALSE(stage.recalls());
  }
}

TEST_CASE("pods that a fresh list no longer has leave memory") {
  Stage stage = bad_pod();
  stage.pod({.name = "b", .device = "gpu-1", .health = Health::Unhealthy});
  stage.settle();
  CHECK(stage.controller().stats().pods == 2);
  stage.deliver(k8s::Delivery(snapshot_of(Kind::Pod, {stage.pod_named("b")}, true)));
  CHECK(stage.run_for(Seconds(61)) == Names{"b"});
  CHECK(stage.controller().stats().pods == 1);
  CHECK(stage.reasons("a").empty());
}

TEST_CASE("a silent watch holds a new taint, and never the removal of one") {
  for (const auto kind : {Kind::Pod, Kind::ResourceClaim, Kind::ResourceSlice, Kind::DeviceTaintRule, Kind::Node}) {
    CAPTURE(k8s::to_string(kind));
    Stage stage = gpu_stage();
    stage.policy().after = kOldestView;
    stage.send_policy();
    stage.settle();
    stage.silence(kind);
    stage.run_for(kOldestView, Seconds(30));
    CHECK(deeds(stage).empty());
    stage.speak(kind);
    stage.settle();
    CHECK(deeds(stage).find("apply NoSchedule gpu-0") != std::string::npos);
    stage.silence(kind);
    drop_pod(stage, "train-1", "train-gpu");
    stage.policy().taint.reset();
    stage.send_policy();
    stage.run_for(kOldestView + Seconds(60), Seconds(30));
    CHECK(deeds(stage).find("delete gpu-0") != std::string::npos);
  }
}

TEST_CASE("a silent watch holds a Job's retry, and says so of the Job") {
  for (const auto kind : {Kind::Job, Kind::Pod, Kind::ConfigMap}) {
    CAPTURE(k8s::to_string(kind));
    JobStage stage;
    stage.policy().after = kOldestView;
    stage.send_policy();
    stage.add_pod(0);
    stage.settle();
    stage.silence(kind);
    stage.run_for(kOldestView + Seconds(30));
    CHECK(stage.patches().empty());
    REQUIRE(stage.verdict("train", Reason::ViewTooOld) != nullptr);
    stage.speak(kind);
    stage.settle();
    CHECK(stage.patches().size() == 1);
    CHECK(stage.verdict("train", Reason::ViewTooOld) == nullptr);
  }
}

TEST_CASE("a rule that went away because the data went back was removed by nobody, and is made again") {
  for (const bool went_back : {true, false}) {
    CAPTURE(went_back);
    Stage stage = gpu_stage();
    stage.policy().evict.reset();
    stage.send_policy();
    stage.run_for(Seconds(70));
    REQUIRE(deeds(stage) == "apply NoSchedule gpu-0");
    stage.deliver(k8s::Delivery(snapshot_of(Kind::DeviceTaintRule, {}, went_back)));
    stage.run_for(std::chrono::minutes(3));
    CHECK((stage.verdict("node-a", Reason::Acknowledged) == nullptr) == went_back);
    CHECK(deeds(stage) == (went_back ? "apply NoSchedule gpu-0, apply NoSchedule gpu-0" : "apply NoSchedule gpu-0"));
    if (!went_back) continue;
    // Whoever deletes it now is heard.
    stage.remove(Kind::DeviceTaintRule, stage.rule()->meta.name);
    stage.run_for(std::chrono::minutes(5));
    CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
  }
}

TEST_CASE("a node's taint that went away because the data went back was removed by nobody") {
  for (const bool went_back : {true, false}) {
    CAPTURE(went_back);
    Stage stage;
    stage.policy().evict.reset();
    stage.policy().taint = TaintRules{.node = true, .node_at_least_devices = 1, .node_at_least_percent = 1};
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(Seconds(70));
    REQUIRE(deeds(stage) == "taint node-a");
    auto node = stage.node_named("node-a");
    node.taints.clear();
    stage.deliver(k8s::Delivery(snapshot_of(Kind::Node, {node}, went_back)));
    stage.run_for(std::chrono::minutes(3));
    CHECK((stage.verdict("node-a", Reason::Acknowledged) == nullptr) == went_back);
    CHECK(deeds(stage) == (went_back ? "taint node-a, taint node-a" : "taint node-a"));
  }
}

TEST_CASE("a credit that went away because the data went back was taken by nobody, and is given again") {
  for (const bool went_back : {true, false}) {
    CAPTURE(went_back);
    JobStage stage;
    stage.policy().evict->after = std::chrono::hours(1);
    stage.send_policy();
    stage.add_pod(0);
    auto before = stage.job();
    stage.run_for(Seconds(90));
    REQUIRE(stage.patches().size() == 1);
    stage.job() = before;
    stage.deliver(k8s::Delivery(snapshot_of(Kind::Job, {before}, went_back)));
    stage.run_for(std::chrono::minutes(2));
    CHECK(stage.patches().size() == (went_back ? 2 : 1));
  }
}

TEST_CASE("times that the server wrote are compared by its clock") {
  // A predecessor's eviction: the pod's deletionTimestamp is the server's, which is an hour ahead.
  for (const bool is_known : {true, false}) {
    CAPTURE(is_known);
    Stage stage = bad_pod();
    stage.limits().max_in_flight = 1;
    stage.send_policy();
    CHECK(stage.run_for(Seconds(61)) == Names{"a"});
    auto& pod = stage.pod_named("a");
    pod.meta.deletion = *pod.meta.deletion + std::chrono::hours(1);
    pod.conditions.change_if(
        [](const auto& one) { return one.type == "DisruptionTarget"; },
        [](k8s::Condition& one) { one.last_transition = *one.last_transition + std::chrono::hours(1); });
    stage.upsert_pod("a");
    stage.restart();
    if (is_known) stage.deliver(ServerClockSeen{.ahead = std::chrono::hours(1)});
    stage.settle();
    CHECK(stage.controller().stats().in_flight == (is_known ? 1 : 0));
  }
}

}  // namespace dhc::test
