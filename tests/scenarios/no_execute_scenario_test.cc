// A driver that taints its own bad device NoExecute, as Intel's does: the cluster deletes the pods, and what is left
// for us to do.
#include <doctest/doctest.h>

#include "tests/support/core/drivers_world.h"
#include "tests/support/core/job_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::job_shape;
using dhc::test::name_in;
using dhc::test::node_in;
using dhc::test::TaintWorld;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

/// A Job of two on DRA devices that may lose `limit` pods.
struct NoExecuteWorld : TaintWorld {
  explicit NoExecuteWorld(int limit) {
    policy().job_retry = JobRetryRules{};
    send_policy();
    auto shape = job_shape(limit, 2);
    shape.name = "train";
    shape.shape.device_class = kDriver;
    cluster.create_job(shape);
    run_for(10s);
    REQUIRE(live("train-").size() == 2);
    first = live("train-").front();
    device = device_of(first);
  }
  void report() { set_health(device, "Unhealthy"); }
  void taint() {
    cluster.taint_device(node_in(device), name_in(device), {"HealthIssues-memorytemperature", "", "NoExecute"});
  }
  [[nodiscard]] Json job() const { return object(Res::Jobs, "train"); }
  [[nodiscard]] std::int64_t failed() const { return number(job(), {"status", "failed"}); }
  [[nodiscard]] std::int64_t limit() const { return number(job(), {"spec", "backoffLimit"}); }

  std::string first;
  std::string device;
};

}  // namespace

TEST_CASE("a pod that the cluster deletes for its driver's NoExecute is not evicted by us too, and fills no cap") {
  NoExecuteWorld world(1);
  world.whole_policy().limits.cap_per_day = {.percent = 0, .at_least = 1};
  world.whole_policy().limits.cap_cluster = {.percent = 0, .at_least = 2};
  world.whole_policy().limits.cap_node = {.percent = 0, .at_least = 2};
  world.whole_policy().limits.cap_owner_per_day = {.percent = 0, .at_least = 1};
  world.hold_caps();
  world.send_policy();
  world.report();
  world.taint();
  world.run_for(5s);
  CHECK(world.pod(world.first).is_null());
  world.restart_controller();
  world.run_for(30min);
  CHECK(world.steps().empty());  // nor is there a rule beside the driver's taint
  CHECK(world.failed() == 1);
  CHECK(world.limit() == 2);  // it died of its device, by whoever's hand
  REQUIRE(world.live("train-").size() == 2);
  // The day has room for one eviction.
  world.set_health(world.device_of(world.live("train-").front()), "Unhealthy");
  world.run_for(10min);
  CHECK(world.evictions().size() == 1);
  CHECK(world.failed() == 2);
  CHECK(world.limit() == 3);
  REQUIRE(world.live("train-").size() == 2);
  const auto third = world.live("train-").front();
  world.set_health(world.device_of(third), "Unhealthy");
  world.run_for(10min);
  CHECK(world.evictions().size() == 1);
  CHECK(world.says_of_pod(third, "CapReached"));
}

TEST_CASE("a pod whose Job has its retry back and that a NoExecute then takes costs the Job that retry and no other") {
  for (const auto after : {0ms, 500ms, 1500ms, 3000ms, 60000ms}) {
    CAPTURE(after.count());
    NoExecuteWorld world(0);
    world.policy().evict->after = 10min;
    world.send_policy();
    world.report();
    world.run_for(2min);
    REQUIRE(world.limit() == 1);
    world.taint();
    world.run_for(after);
    world.restart_controller();
    world.run_for(30min);
    CHECK(world.evictions().empty());
    CHECK(world.failed() == 1);
    CHECK(world.limit() == 1);
    CHECK(world.live("train-").size() == 2);
  }
}

TEST_CASE("a NoExecute that comes while our eviction of the pod goes on is the same loss") {
  NoExecuteWorld world(0);
  world.report();
  for (int i = 0; i < 3000 && world.evictions().empty(); ++i) world.run_for(100ms);
  world.taint();
  world.run_for(30min);
  CHECK(world.evictions() == Words{"default/" + world.first});
  CHECK(world.failed() == 1);
  CHECK(world.limit() == 1);
  CHECK(world.live("train-").size() == 2);
}

TEST_CASE("a NoExecute on a device that nobody calls bad costs the Job a retry of its own") {
  NoExecuteWorld world(3);
  world.taint();
  world.run_for(30min);
  CHECK(world.evictions().empty());
  CHECK(world.failed() == 1);
  CHECK(world.limit() == 3);
}

TEST_CASE("a NoExecute that the policy names by its taint gets the Job its retry back, also from the next process") {
  for (const auto after : {500ms, 1500ms, 5000ms}) {
    CAPTURE(after.count());
    NoExecuteWorld world(3);
    world.policy().match.device_taints = {{.key = "HealthIssues-*", .effect = {}}};
    world.send_policy();
    world.taint();
    world.run_for(after);
    if (after == 5000ms) world.restart_controller();
    world.run_for(30min);
    CHECK(world.evictions().empty());
    CHECK(world.failed() == 1);
    CHECK(world.limit() == 4);
  }
}
