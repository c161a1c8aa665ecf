#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "tests/controller/taint/driver_stage.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;

// What a kubelet's restart shows when the watch of nodes is slower than that of pods. Source: seen on 1.37.1.
TEST_CASE("A kubelet's restart is no recovery, whichever of its two watches comes first") {
  for (const Millis lag : {Millis(0), Millis(900), Millis(9'999)}) {
    CAPTURE(lag.count());
    Stage stage;
    stage.policy().evict.reset();
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(Seconds(61));
    const auto since = stage.verdict("a", Reason::NoEvictionConfigured)->since;
    stage.report("a", Health::Healthy);
    stage.run_for(lag, lag);
    stage.node("node-a", 0, 0);
    stage.run_for(Seconds(30));
    stage.report("a", Health::Unhealthy);
    stage.node("node-a", 4, 3);
    stage.run_for(Seconds(5));
    REQUIRE(stage.verdict("a", Reason::NoEvictionConfigured) != nullptr);
    CHECK(stage.verdict("a", Reason::NoEvictionConfigured)->since == since);
    CHECK_FALSE(stage.has_event("a", "Recovered"));
  }
}

TEST_CASE("A plugin device's Healthy ends an open incident after ten seconds, to the millisecond") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  stage.report("a", Health::Healthy);
  stage.settle();
  stage.advance(kHealthySettle - Millis(1));
  stage.settle();
  CHECK(stage.controller().stats().devices_unknown == 1);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.controller().stats().devices_healthy == 1);
}

TEST_CASE("A new process weighs a plugin's Healthy in its first turn, where the pod's condition remembers a fault") {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  put_driver(stage, stage.now().wall, {.folders = {"device-plugins"}});
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(61));
  REQUIRE(count_of_conditions(stage, true) == 1);
  stage.node("node-a", 0, 0);
  stage.report("a", Health::Healthy);
  stage.restart();
  stage.settle();
  REQUIRE(stage.controller().stats().devices_unknown == 1);
  REQUIRE(stage.wake_at());
  CHECK((*stage.wake_at() <= stage.now().mono + kHealthySettle));
}

TEST_CASE("What pods hold is as good as its node says, whether a pod speaks again or not") {
  Stage stage;
  stage.node("node-a", 4, 4);
  stage.pod({.name = "a", .device = "gpu-0"});
  stage.settle();
  REQUIRE(stage.controller().stats().devices_healthy == 1);
  // Its plugin is gone: nobody vouches for it any more.
  stage.node("node-a", 0, 0);
  stage.settle();
  CHECK(stage.controller().stats().devices_unknown == 1);
  stage.node("node-a", 4, 4);
  stage.settle();
  CHECK(stage.controller().stats().devices_unknown == 1);
  stage.run_for(kPluginSettle - Millis(1), Seconds(10));
  CHECK(stage.controller().stats().devices_unknown == 1);
  stage.run_for(Millis(1), Millis(1));
  CHECK(stage.controller().stats().devices_healthy == 1);
}

TEST_CASE("An evicted pod that a finalizer holds after its end is named until it is gone") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(Seconds(61)) == std::vector<std::string>{"a"});
  stage.pod_named("a").phase = k8s::PodPhase::Failed;
  stage.upsert_pod("a");
  stage.settle();
  CHECK(stage.reasons("a") == "Evicted");
  stage.run_for(Seconds(151));
  CHECK(stage.reasons("a") == "StuckTerminating");
  stage.remove_pod("a");
  stage.settle();
  CHECK(stage.reasons("a").empty());
}

TEST_CASE("Another writer who takes our condition away each time is answered a few times a minute") {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(60));
  const auto before = stage.conditions().size();
  for (int i = 0; i < 600; ++i) {
    stage.pod_named("a").conditions.clear();
    stage.upsert_pod("a");
    stage.advance(Millis(100));
    stage.settle();
  }
  CHECK(stage.conditions().size() - before <= 6);
}

}  // namespace dhc::test
