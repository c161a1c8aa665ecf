// How old what is known may be: quiet clusters and silent streams, in virtual time.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/scenarios/resource.h"
#include "tests/support/core/scenario.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Scenario;
using namespace std::chrono_literals;

namespace {

struct WatchedGpus : Scenario {
  WatchedGpus() {
    cluster.add_node({"node-a", {{kResource, 4}}, {}, {}});
    cluster.add_node({"node-b", {{kResource, 4}}, {}, {}});
    PodShape shape;
    shape.resource = kResource;
    cluster.create_deployment("default", "infer", 2, shape);
    run_for(10s);
  }
  void set_health(const std::string& pod, std::string_view health) {
    cluster.set_device_health(text(this->pod(pod), {"spec", "nodeName"}), plugin_device(pod), health);
  }
};

}  // namespace

TEST_CASE("two hours in which nothing happens are never too old to act on, with bookmarks and without") {
  for (const auto every : {Millis(60s), Millis(24h)}) {
    CAPTURE(every.count());
    WatchedGpus gpus;
    gpus.cluster.settings().bookmark_every = every;
    gpus.restart_controller();
    bool was_blind = false;
    for (int minute = 0; minute < 120; ++minute) {
      gpus.run_for(60s);
      was_blind = was_blind || gpus.controller().stats().blind;
    }
    CHECK_FALSE(was_blind);
    const auto pod = gpus.live("infer-").front();
    gpus.set_health(pod, "Unhealthy");
    gpus.run_for(70s);
    CHECK(gpus.evictions() == std::vector<std::string>{"default/" + pod});
  }
}

TEST_CASE("a device that recovers while the watch of pods is silent costs no pod: two silent streams list afresh") {
  WatchedGpus gpus;
  gpus.policy().after = 6min;
  gpus.send_policy();
  const auto pod = gpus.live("infer-").front();
  gpus.set_health(pod, "Unhealthy");
  gpus.run_for(5s);
  gpus.mute(k8s::Kind::Pod, true);
  gpus.run_for(30s);
  gpus.set_health(pod, "Healthy");
  gpus.run_for(30min);
  CHECK(gpus.evictions().empty());
  CHECK(gpus.reasons(pod).empty());
  CHECK_FALSE(gpus.controller().stats().blind);
}

TEST_CASE("a device that recovers while pods can be neither watched nor listed costs no pod, however long that lasts") {
  WatchedGpus gpus;
  gpus.policy().after = 6min;
  gpus.send_policy();
  const auto pod = gpus.live("infer-").front();
  gpus.set_health(pod, "Unhealthy");
  gpus.run_for(5s);
  gpus.mute(k8s::Kind::Pod, true);
  gpus.cluster.faults().add({.method = k8s::Method::Get, .path_contains = "/api/v1/pods", .count = -1, .status = 503});
  gpus.run_for(30s);
  gpus.set_health(pod, "Healthy");
  gpus.run_for(30min);
  CHECK(gpus.evictions().empty());
  CHECK(gpus.reasons(pod) == std::vector<std::string>{"ViewTooOld"});
  CHECK(gpus.controller().stats().blind);
  gpus.mute(k8s::Kind::Pod, false);
  gpus.cluster.faults().clear();
  gpus.run_for(5min);
  CHECK(gpus.evictions().empty());
  CHECK_FALSE(gpus.controller().stats().blind);
  CHECK(gpus.live("infer-").size() == 2);
}
