// The Job controller. **Source:** kubernetes-tried section 1, seen on a real 1.37.1.
#include <doctest/doctest.h>

#include "tests/core/simulator/shapes.h"
#include "tests/support/core/lab.h"

using namespace dhc;
using namespace dhc::sim;
using dhc::test::Lab;
using namespace std::chrono_literals;

namespace {

JobShape job(int backoff_limit, int parallelism = 1) {
  JobShape shape;
  shape.name = "train";
  shape.backoff_limit = backoff_limit;
  shape.parallelism = parallelism;
  shape.completions = parallelism;
  shape.shape.resource = kGpu;
  return shape;
}

struct JobLab : Lab {
  explicit JobLab(const JobShape& shape) {
    cluster.add_node({"node-a", {{kGpu, 8}}, {}, {}});
    cluster.create_job(shape);
    run_for(5s);
  }
  [[nodiscard]] Json train() const { return object(Res::Jobs, "train"); }
  void evict_first() {
    const auto pods = live("train-");
    REQUIRE(!pods.empty());
    REQUIRE(evict(pods[0], uid(pods[0])).status == 201);
  }
  Answer credit(int limit) {
    return merge("/apis/batch/v1/namespaces/default/jobs/train", {{"spec", {{"backoffLimit", limit}}}});
  }
};

}  // namespace

TEST_CASE("a Job with backoffLimit 0 fails when its pod is evicted") {
  JobLab lab(job(0));
  lab.evict_first();
  lab.run_for(5s);
  CHECK(condition_status(lab.train(), "Failed") == "True");
  CHECK(lab.train()["status"]["failed"] == 1);
  CHECK(lab.train()["status"]["conditions"][0]["reason"] == "BackoffLimitExceeded");
}

TEST_CASE("a credit before the eviction saves the Job, and raises its generation") {
  JobLab lab(job(0));
  const auto generation = number(lab.train(), {"metadata", "generation"});
  CHECK(lab.credit(1).status == 200);
  CHECK(number(lab.train(), {"metadata", "generation"}) == generation + 1);
  lab.evict_first();
  lab.run_for(20s);
  CHECK(condition_status(lab.train(), "Failed").empty());
  CHECK(lab.train()["status"]["failed"] == 1);
  CHECK(lab.live("train-").size() == 1);
}

TEST_CASE("a Job cache that is behind kills the healthy neighbour and the Job in spite of the credit") {
  JobLab lab(job(0, 2));
  lab.cluster.lags().job_cache = 3s;
  CHECK(lab.credit(1).status == 200);
  lab.evict_first();
  lab.run_for(10s);
  CHECK(condition_status(lab.train(), "Failed") == "True");
  CHECK(lab.train()["status"]["failed"] == 2);
  CHECK(lab.live("train-").empty());
}

TEST_CASE("a Job cache that is behind does no harm when the eviction waits for it") {
  JobLab lab(job(0, 2));
  lab.cluster.lags().job_cache = 3s;
  CHECK(lab.credit(1).status == 200);
  lab.run_for(5s);
  lab.evict_first();
  lab.run_for(20s);
  CHECK(condition_status(lab.train(), "Failed").empty());
  CHECK(lab.live("train-").size() == 2);
}

TEST_CASE("lowering the limit below what has failed ends the Job and its running pods at once") {
  JobLab lab(job(1));
  lab.evict_first();
  lab.run_for(20s);
  REQUIRE(lab.live("train-").size() == 1);
  CHECK(lab.credit(0).status == 200);
  lab.run_for(5s);
  CHECK(condition_status(lab.train(), "Failed") == "True");
  CHECK(lab.train()["status"]["failed"] == 2);
}

TEST_CASE("replacements wait 10, 20 and 40 seconds, also those of ignored pods") {
  for (const bool ignored : {false, true}) {
    auto shape = job(ignored ? 0 : 6);
    if (ignored) shape.ignore_condition = "DisruptionTarget";
    JobLab lab(shape);
    for (const auto wait : {10s, 20s, 40s}) {
      lab.evict_first();
      lab.run_for(wait - 1s);
      CHECK(lab.live("train-").empty());
      lab.run_for(4s);
      CHECK(lab.live("train-").size() == 1);
    }
    CHECK(number(lab.train(), {"status", "failed"}) == (ignored ? 0 : 3));
  }
}

TEST_CASE("a podFailurePolicy that ignores our own condition keeps the Job alive through a crash") {
  auto shape = job(0);
  shape.ignore_condition = "device-health.io/DeviceUnhealthy";
  JobLab lab(shape);
  const auto pod = lab.live("train-").front();
  const Json condition = {{"type", "device-health.io/DeviceUnhealthy"}, {"status", "True"}};
  CHECK(lab.apply("/api/v1/namespaces/default/pods/" + pod + "/status",
                  {{"status", {{"conditions", Json::array({condition})}}}})
            .status == 200);
  lab.cluster.crash_pod("default", pod, 1);
  lab.run_for(20s);
  CHECK(condition_status(lab.train(), "Failed").empty());
  CHECK(lab.live("train-").size() == 1);
}

TEST_CASE("a pod that exits 0 on SIGTERM completes its Job") {
  auto shape = job(0);
  shape.shape.on_sigterm = OnSigterm::ExitZero;
  JobLab lab(shape);
  lab.evict_first();
  lab.run_for(5s);
  CHECK(condition_status(lab.train(), "Complete") == "True");
}

TEST_CASE("an Indexed Job gets the same indexes back") {
  auto shape = job(2, 3);
  shape.indexed = true;
  JobLab lab(shape);
  const auto pods = lab.live("train-");
  REQUIRE(pods.size() == 3);
  CHECK(pods[1].starts_with("train-1-"));
  lab.evict(pods[1], lab.uid(pods[1]));
  lab.run_for(20s);
  const auto after = lab.live("train-");
  REQUIRE(after.size() == 3);
  CHECK(after[1].starts_with("train-1-"));
  CHECK(after[1] != pods[1]);
}

TEST_CASE("podReplacementPolicy Failed replaces and counts a pod only once it has ended") {
  auto shape = job(3);
  shape.replace_when_failed = true;
  shape.shape.on_sigterm = OnSigterm::Ignore;
  shape.shape.grace_seconds = 30;
  JobLab lab(shape);
  lab.evict_first();
  lab.run_for(25s);
  CHECK(number(lab.train(), {"status", "failed"}) == 0);
  CHECK(lab.live("train-").empty());
  lab.run_for(20s);
  CHECK(number(lab.train(), {"status", "failed"}) == 1);
  CHECK(lab.live("train-").size() == 1);
}

TEST_CASE("a rejected pod counts as failed without DisruptionTarget") {
  Lab lab;
  lab.cluster.add_node({"node-a", {{kGpu, 1}}, {}, {}});
  lab.cluster.lags().node_status = 10s;
  lab.run_for(1s);
  lab.cluster.set_device_health("node-a", "GPU-0", "Unhealthy");
  lab.cluster.create_job(job(0));
  lab.run_for(8s);
  CHECK(condition_status(lab.object(Res::Jobs, "train"), "Failed") == "True");
}

TEST_CASE("a Job whose pods end by themselves completes") {
  auto shape = job(0, 2);
  shape.shape.run_for = 10s;
  JobLab lab(shape);
  CHECK(condition_status(lab.train(), "Complete").empty());
  lab.run_for(15s);
  CHECK(condition_status(lab.train(), "Complete") == "True");
  CHECK(lab.train()["status"]["succeeded"] == 2);
}

TEST_CASE("the same seed and the same steps give the same bytes") {
  const auto run = [] {
    JobLab lab(job(2, 2));
    lab.evict_first();
    lab.run_for(60s);
    std::string all;
    for (const auto& type : all_types()) {
      for (const auto& [name, object] : lab.cluster.store().all(type.id)) all += object->dump();
    }
    return all;
  };
  CHECK(run() == run());
}

TEST_CASE("backoffLimitPerIndex: an index that has failed too often is given up, and the others run on") {
  auto shape = job(0, 2);
  shape.indexed = true;
  shape.limit_per_index = 1;
  JobLab lab(shape);
  CHECK(lab.train()["spec"]["backoffLimit"] == 2147483647);
  const auto pod_of = [&](const std::string& index) {
    for (const auto& name : lab.live("train-")) {
      if (name.starts_with("train-" + index + "-")) return name;
    }
    return std::string();
  };
  const auto failures_of = [&](const std::string& name) {
    return text(lab.pod(name), {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"});
  };
  const auto other = pod_of("1");
  const auto first = pod_of("0");
  CHECK(failures_of(first) == "0");
  CHECK(lab.evict(first, lab.uid(first)).status == 201);
  lab.run_for(5s);
  // It is counted once its successor is there, after the index's own back-off.
  CHECK(number(lab.train(), {"status", "failed"}) == 0);
  lab.run_for(15s);
  const auto second = pod_of("0");
  REQUIRE(!second.empty());
  CHECK(failures_of(second) == "1");
  CHECK(number(lab.train(), {"status", "failed"}) == 1);
  CHECK(lab.evict(second, lab.uid(second)).status == 201);
  lab.run_for(5min);
  CHECK(pod_of("0").empty());
  CHECK(lab.train()["status"]["failedIndexes"] == "0");
  CHECK(condition_status(lab.train(), "Failed").empty());
  CHECK(pod_of("1") == other);
}

TEST_CASE("more failed indexes than maxFailedIndexes fail the Job and all its pods") {
  auto shape = job(0, 3);
  shape.indexed = true;
  shape.limit_per_index = 0;
  shape.most_failed_indexes = 0;
  JobLab lab(shape);
  lab.evict_first();
  lab.run_for(10s);
  CHECK(condition_status(lab.train(), "Failed") == "True");
  CHECK(lab.train()["status"]["conditions"][0]["reason"] == "MaxFailedIndexesExceeded");
  CHECK(lab.live("train-").empty());
}
