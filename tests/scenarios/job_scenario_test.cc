// Jobs and the retries that hardware takes: the controller against the simulated Job controller, in virtual time.
#include <doctest/doctest.h>

#include "tests/support/core/job_world.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::job_shape;
using dhc::test::JobWorld;
using namespace std::chrono_literals;

TEST_CASE("a Job with backoffLimit 0 on a bad device finishes") {
  auto shape = job_shape(0);
  shape.shape.run_for = 5min;
  JobWorld world(shape);
  const auto pod = world.break_device();
  world.run_for(30s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  CHECK(world.limit() == 1);
  world.run_for(10min);
  CHECK(world.is_complete());
  CHECK(world.failed() == 1);
}

TEST_CASE("no pod goes on a credit that the server has lost, as etcd restored to before it shows no watch") {
  for (int ago = 1; ago <= 8; ++ago) {
    CAPTURE(ago);
    JobWorld world(job_shape(0));
    world.policy().after = 20s;
    world.send_policy();
    world.break_device();
    world.run_for(2s);
    const auto backup = world.cluster.store().back_up();
    for (int second = 0; second < 60 && world.limit() == 0; ++second) world.run_for(1s);
    REQUIRE(world.limit() == 1);
    world.run_for(Seconds(ago));
    REQUIRE(world.evictions().empty());
    // As a server that has the watch of Jobs from before does: it is told nothing, and none of it ends.
    world.mute(k8s::Kind::Job, true);
    world.restore_etcd(backup);
    world.run_for(30s);
    world.mute(k8s::Kind::Job, false);
    world.run_for(5min);
    CHECK_FALSE(world.has_failed());
    CHECK(world.evictions().size() == 1);
  }
}

TEST_CASE("the third loss of a Job with maxPerJob 2 is held, with its reason") {
  JobWorld world(job_shape(0));
  world.policy().job_retry->max_per_job = 2;
  world.send_policy();
  for (int loss = 0; loss < 2; ++loss) {
    world.break_device();
    world.run_for(3min);
    CHECK(world.evictions().size() == static_cast<std::size_t>(loss) + 1);
  }
  const auto pod = world.break_device();
  world.run_for(5min);
  CHECK(world.evictions().size() == 2);
  CHECK(world.says(pod, "CreditLimitReached"));
  CHECK(world.says(pod, "NotCreditable"));
  CHECK(world.limit() == 2);
  CHECK(!world.has_failed());
}

TEST_CASE("ten losses of one Job cost it nothing") {
  JobWorld world(job_shape(0, 2));
  world.policy().job_retry->max_per_job = 20;
  world.send_policy();
  for (int loss = 1; loss <= 10; ++loss) {
    REQUIRE(!world.break_device().empty());
    world.run_for(15min);
    CHECK(world.limit() == loss);
  }
  CHECK(!world.has_failed());
  CHECK(world.failed() == 10);
  CHECK(world.live("train-").size() == 2);
}

TEST_CASE("a Job whose podFailurePolicy ignores the disruption gets no credit and finishes") {
  auto shape = job_shape(0);
  shape.ignore_condition = "DisruptionTarget";
  shape.shape.run_for = 5min;
  JobWorld world(shape);
  const auto pod = world.break_device();
  world.run_for(30s);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + pod});
  world.run_for(10min);
  CHECK(world.job_writes() == 0);
  CHECK(world.is_complete());
}

TEST_CASE("a Job that ignores our own condition gets no credit, and its pod goes only with the condition on it") {
  auto shape = job_shape(0);
  shape.ignore_condition = "device-health.io/DeviceUnhealthy";
  JobWorld world(shape);
  world.break_device();
  world.run_for(2min);
  CHECK(world.evictions().size() == 1);
  CHECK(world.job_writes() == 0);
  CHECK(!world.has_failed());
}

TEST_CASE("a restart at any second gives exactly one credit and one eviction") {
  for (int after = 0; after < 40; ++after) {
    CAPTURE(after);
    JobWorld world(job_shape(0, 2));
    world.break_device();
    world.run_for(Seconds(after));
    world.restart_controller();
    world.run_for(3min);
    CHECK(world.limit() == 1);
    CHECK(world.credits().credits.size() == 1);
    CHECK(world.evictions().size() == 1);
    CHECK(!world.has_failed());
    CHECK(world.failed() == 1);
  }
}

TEST_CASE("a Job controller that is behind on Jobs by less than the settle time costs no healthy pod") {
  JobWorld world(job_shape(0, 4));
  world.cluster.lags().job_cache = 9s;
  world.break_device();
  world.run_for(3min);
  CHECK(!world.has_failed());
  CHECK(world.failed() == 1);
  CHECK(world.live("train-").size() == 4);
}

TEST_CASE("without the settle time the same lag kills the Job, so the time is what saves it") {
  JobWorld world(job_shape(0, 4));
  world.policy().job_retry->settle = 0s;
  world.send_policy();
  world.cluster.lags().job_cache = 9s;
  world.break_device();
  world.run_for(3min);
  CHECK(world.has_failed());
}

TEST_CASE("several pods lost at once cost one patch and one back-off, and Indexed Jobs keep their indexes") {
  auto shape = job_shape(0, 4);
  shape.indexed = true;
  JobWorld world(shape);
  for (int pod = 0; pod < 3; ++pod) {
    REQUIRE(!world.break_device().empty());
    world.run_for(1100ms);
  }
  world.run_for(25s);
  CHECK(world.evictions().size() == 3);
  CHECK(world.limit() == 3);
  world.run_for(2min);
  CHECK(!world.has_failed());
  CHECK(world.live("train-").size() == 4);
  for (const auto* index : {"train-0-", "train-1-", "train-2-", "train-3-"}) CHECK(world.live(index).size() == 1);
}

TEST_CASE("an index with a retry to spare pays with it, and the last one is held: it cannot be given back") {
  auto shape = job_shape(0, 2);
  shape.indexed = true;
  shape.limit_per_index = 1;
  shape.most_failed_indexes = 0;
  JobWorld world(shape);
  const auto first = world.break_device();
  world.run_for(3min);
  CHECK(world.evictions() == std::vector<std::string>{"default/" + first});
  CHECK(world.job_writes() == 0);
  const auto index = text(world.cluster_object(Res::Jobs, "train"), {"status", "failedIndexes"});
  CHECK(index.empty());
  // The same index again, on its second device.
  std::string second;
  for (const auto& name : world.live("train-")) {
    if (text(world.pod(name), {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}) == "1")
      second = name;
  }
  REQUIRE(!second.empty());
  world.cluster.set_device_health(text(world.pod(second), {"spec", "nodeName"}), world.plugin_device(second),
                                  "Unhealthy");
  world.run_for(10min);
  CHECK(world.evictions().size() == 1);
  CHECK(world.says(second, "IndexOutOfRetries"));
  CHECK(!world.has_failed());
  // Whoever lets the loss happen all the same sees the whole Job end.
  world.policy().job_retry->not_creditable = JobRetryRules::NotCreditable::Evict;
  world.send_policy();
  world.run_for(3min);
  CHECK(world.evictions().size() == 2);
  CHECK(world.has_failed());
}

TEST_CASE("a parallel Job of 100 pods with one bad device loses one pod") {
  auto shape = job_shape(0, 100);
  shape.parallelism = 15;  // one of the sixteen devices is free: a place to go
  JobWorld world(shape);
  world.break_device();
  world.run_for(5min);
  CHECK(world.evictions().size() == 1);
  CHECK(world.limit() == 1);
  CHECK(world.failed() == 1);
}

TEST_CASE("conflicts on the Job delay the credit and never double it") {
  for (const int conflicts : {1, 2, 3, 4, 6}) {
    CAPTURE(conflicts);
    JobWorld world(job_shape(0));
    world.cluster.faults().add(
        {.method = k8s::Method::Patch, .path_contains = "/jobs/train", .count = conflicts, .status = 409});
    world.break_device();
    world.run_for(8min);
    CHECK(world.limit() == 1);
    CHECK(world.evictions().size() == 1);
    CHECK(!world.has_failed());
  }
}

TEST_CASE("a credit whose answer is lost is not given again") {
  JobWorld world(job_shape(0));
  world.cluster.faults().add(
      {.method = k8s::Method::Patch, .path_contains = "/jobs/train", .count = 1, .status = 504, .handled_first = true});
  world.break_device();
  world.run_for(5min);
  CHECK(world.limit() == 1);
  CHECK(world.evictions().size() == 1);
  CHECK(!world.has_failed());
}

TEST_CASE("the old manifest applied between credit and eviction holds the pod and keeps the Job alive") {
  JobWorld world(job_shape(0));
  (void)world.break_device();
  world.run_for(10s);
  REQUIRE(world.limit() == 1);
  CHECK(world.merge("/apis/batch/v1/namespaces/default/jobs/train", {{"spec", {{"backoffLimit", 0}}}}).status == 200);
  world.run_for(10min);
  CHECK(world.evictions().empty());
  CHECK(world.says("train", "CreditReverted"));
  CHECK(world.limit() == 0);
  CHECK(!world.has_failed());
}

TEST_CASE("suspended, managed and owned Jobs are not written") {
  for (int kind = 0; kind < 4; ++kind) {
    CAPTURE(kind);
    JobWorld world(job_shape(0));
    world.cluster.store().edit(Res::Jobs, {"default", "train"}, [&](Json& job) {
      if (kind == 0) job["spec"]["managedBy"] = "example.com/queue";
      if (kind == 1) {
        job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                                                           {"kind", "JobSet"},
                                                           {"name", "s"},
                                                           {"uid", "u"},
                                                           {"controller", true}}});
      }
      if (kind == 2) job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q";
      if (kind == 3) job["spec"]["suspend"] = true;
    });
    REQUIRE_FALSE(world.break_device().empty());
    world.run_for(5min);
    CHECK(world.job_writes() == 0);
    CHECK(world.evictions().empty());
  }
}

TEST_CASE("a crash on a bad device is credited after the fact, if the Job lives") {
  JobWorld world(job_shape(3, 2));
  world.policy().after = 10min;
  world.send_policy();
  const auto pod = world.break_device();
  world.run_for(5s);
  world.cluster.crash_pod("default", pod, 1);
  world.run_for(1min);
  CHECK(world.limit() == 4);
  CHECK(world.says("train", "DiedOfDevice"));
  CHECK(!world.has_failed());
}

TEST_CASE("a crash on a bad device while no controller runs is credited by the next one") {
  JobWorld world(job_shape(3, 2));
  world.whole_policy().own_namespace = "device-health-system";
  world.policy().after = 10min;
  world.restart_controller();
  world.run_for(5s);
  const auto pod = world.break_device();
  world.run_for(15s);
  world.Lab::run_for(5s);  // there is no controller
  world.cluster.crash_pod("default", pod, 1);
  world.Lab::run_for(2min);
  world.restart_controller();
  world.run_for(1min);
  CHECK(world.limit() == 4);
  CHECK(world.says("train", "DiedOfDevice"));
  CHECK(!world.has_failed());
}

TEST_CASE("a Job that died of its device is told so, and made again once where the policy says it") {
  for (const bool recreate : {false, true}) {
    JobWorld world(job_shape(0));
    world.policy().after = 10min;
    world.policy().job_retry->recreate_once = recreate;
    world.cluster.lags().job_batch = 0s;  // the Job controller counts before we could give the retry back
    world.send_policy();
    const auto pod = world.break_device();
    world.run_for(5s);
    world.cluster.crash_pod("default", pod, 1);
    world.run_for(5min);
    CHECK(world.has_failed());
    CHECK(world.says("train", "JobDiedOfDevice"));
    std::size_t jobs = 0;
    for (const auto& [name, job] : world.cluster.store().all(Res::Jobs))
      jobs += name.name.starts_with("train") ? 1U : 0U;
    CHECK(jobs == (recreate ? 2 : 1));
  }
}

TEST_CASE("an evicted pod that exits 0 on SIGTERM is told on its Job") {
  auto shape = job_shape(0);
  shape.shape.on_sigterm = OnSigterm::ExitZero;
  JobWorld world(shape);
  world.break_device();
  world.run_for(5min);
  CHECK(world.is_complete());
  CHECK(world.says("train", "EvictedPodSucceeded"));
  CHECK(text(world.job(), {"metadata", "annotations", kLossesAnnotation}).find("EvictedPodSucceeded") !=
        std::string::npos);
}

TEST_CASE("a node that rejects one replacement after the other is tainted, and the next one runs elsewhere") {
  for (const bool taint : {false, true}) {
    CAPTURE(taint);
    JobWorld world(job_shape(0));
    world.policy().evict.reset();
    world.policy().job_retry->max_per_job = 100;
    world.policy().job_retry->taints_rejecting_node = taint;
    world.send_policy();
    const auto pod = world.live("train-").front();
    const auto node = text(world.pod(pod), {"spec", "nodeName"});
    // The other node is cordoned until the first rejections; nobody hears of the bad devices but who asks for one.
    const std::string other = node == "node-a" ? "node-b" : "node-a";
    world.cluster.lags().node_status = 10h;
    for (int i = 0; i < 8; ++i) world.cluster.set_device_health(node, "GPU-" + std::to_string(i), "Unhealthy");
    const auto cordon = [&](Json on) { world.merge("/api/v1/nodes/" + other, {{"spec", {{"unschedulable", on}}}}); };
    cordon(true);
    world.run_for(1s);
    world.cluster.crash_pod("default", pod, 1);
    world.run_for(10min);
    cordon(nullptr);
    world.run_for(10min);
    const auto now = *world.cluster.store().all(Res::Nodes).at({{}, node});
    CHECK(list(now, {"spec", "taints"}).empty() != taint);
    if (taint) {
      CHECK(!world.has_failed());
      REQUIRE(world.live("train-").size() == 1);
      CHECK(text(world.pod(world.live("train-").front()), {"spec", "nodeName"}) == other);
    }
  }
}

TEST_CASE("after quiet nothing more is written to a Job") {
  JobWorld world(job_shape(0));
  world.break_device();
  world.run_for(5min);
  const auto writes = world.cluster.writes().size();
  world.run_for(30min);
  CHECK(world.cluster.writes().size() == writes);
}
