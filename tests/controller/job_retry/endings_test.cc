#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE("A credit is spent when its pod is gone, and unspent when the pod ended well") {
  JobStage lost;
  lost.add_pod(0);
  lost.run_for(Seconds(70));
  CHECK(lost.states() == "given");
  lost.remove_pod("train-0");
  lost.add_pod(1, Health::Healthy);
  // The Job's own watch may be behind the pod's.
  lost.run_for(kUnseen - Seconds(1));
  CHECK(lost.states() == "given");
  lost.run_for(Seconds(2));
  CHECK(lost.states() == "spent");
  CHECK(lost.job().backoff_limit == 1);

  JobStage well;
  well.add_pod(0);
  well.run_for(Seconds(61));
  well.end_pod("train-0", PodPhase::Succeeded);
  well.run_for(Seconds(2));
  CHECK(well.states() == "unspent");
  CHECK(well.job().backoff_limit == 1);
}

TEST_CASE("What a Job lost while another process led counts until its own watch has shown it for sure") {
  JobStage stage;
  stage.policy().job_retry->max_per_job = 1;
  stage.send_policy();
  stage.add_pod(0);
  CHECK(stage.run_for(Seconds(75)) == Names{"train-0"});
  REQUIRE(stage.states() == "given");
  SUBCASE("the pod has gone") { stage.remove_pod("train-0"); }
  SUBCASE("the Job has not counted it yet") { stage.end_pod("train-0", PodPhase::Failed); }
  stage.restart();
  stage.add_pod(1);
  stage.policy().after = Seconds(0);
  stage.send_policy();
  // Its failure is in neither watch: one more would end the Job.
  CHECK(stage.run_for(kUnseen - Seconds(1)).empty());
  const auto* held = stage.verdict("train-1", Reason::NotCreditable);
  REQUIRE(held != nullptr);
  CHECK(held->message.starts_with("the loss would end Job train: backoffLimit is 1, 0 of its pods have failed and 1 "));
  REQUIRE(held->next_at);
  stage.job().failed = 1;
  stage.upsert_job("train");
  CHECK(stage.run_for(minutes(2)).empty());
}

TEST_CASE("A pod that fails before its kubelet has named its device counts before the Job's own watch shows it") {
  JobStage stage;
  stage.policy().job_retry.reset();
  stage.send_policy();
  stage.add_pod(0);
  stage.job().backoff_limit = 1;
  stage.upsert_job("train");
  auto& silent = stage.pod({.name = "train-9", .owner = "Job/train", .device = "gpu-3", .health = Health::Healthy});
  silent.allocated.clear();
  silent.requests = {{std::string(kGpu), 1}};
  stage.upsert_pod("train-9");
  CHECK(stage.run_for(Seconds(50)).empty());
  stage.end_pod("train-9", PodPhase::Failed);
  CHECK(stage.run_for(kUnseen - Seconds(1)).empty());
  REQUIRE(stage.verdict("train-0", Reason::WouldEndJob) != nullptr);
  CHECK(stage.run_for(Seconds(2)) == Names{"train-0"});
}

TEST_CASE("Retries that somebody took back hold no pod for ever, also when nobody knows what became of theirs") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().backoff_limit = 2;
  stage.upsert_job("train");
  CHECK(stage.run_for(Seconds(75)) == Names{"train-0"});
  REQUIRE(stage.states() == "given");
  stage.remove_pod("train-0");
  stage.job().failed = 1;
  stage.job().backoff_limit = 2;
  stage.upsert_job("train");
  stage.settle();
  stage.restart();
  stage.policy().job_retry.reset();
  stage.send_policy();
  stage.add_pod(1);
  CHECK(stage.run_for(minutes(3)) == Names{"train-1"});
}

TEST_CASE("The credit of a device that stays healthy for the policy's time pays for the next loss") {
  JobStage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.run_for(Seconds(61));
  stage.report("train-0", Health::Healthy);
  stage.run_for(minutes(9), Seconds(10));
  CHECK(stage.states() == "given");
  stage.run_for(minutes(2), Seconds(10));
  CHECK(stage.states() == "unspent");
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(minutes(2), Seconds(10));
  CHECK(stage.states() == "given");
  CHECK(stage.credits().credits[0].pod == "train-1");
  CHECK(stage.job().backoff_limit == 1);
}

TEST_CASE("takeBack lowers the limit by unspent credits, and only if the Job has lost no pod") {
  const auto nothing = static_cast<std::int64_t k8s::Job::*>(nullptr);
  for (const auto lost : {nothing, &k8s::Job::failed, &k8s::Job::terminating, &k8s::Job::uncounted}) {
    JobStage stage;
    stage.policy().job_retry->take_back = true;
    stage.send_policy();
    stage.add_pod(0);
    stage.add_pod(1, Health::Healthy);
    stage.run_for(Seconds(61));
    if (lost != nothing) stage.job().*lost = 1;
    stage.end_pod("train-0", PodPhase::Succeeded);
    stage.upsert_job("train");
    stage.run_for(Seconds(5));
    CHECK(stage.job().backoff_limit == (lost == nothing ? 0 : 1));
    CHECK(stage.states() == (lost == nothing ? "" : "unspent"));
    CHECK(stage.verdict("train", Reason::CreditReverted) == nullptr);
    if (lost == nothing || lost == &k8s::Job::failed) continue;
    stage.job().*lost = 0;
    stage.upsert_job("train");
    stage.run_for(Seconds(5));
    CHECK(stage.job().backoff_limit == 0);
  }
}

TEST_CASE("A pod that fails before its incident opened is credited because its device was bad") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(2));
  CHECK(stage.job().backoff_limit == 4);
  CHECK(stage.states() == "spent");
  CHECK(stage.has_event("train", "DiedOfDevice"));
  const auto losses = parse_losses(*k8s::find(stage.job().meta.annotations, kLossesAnnotation));
  REQUIRE(losses.has_value());
  REQUIRE(losses->size() == 1);
  CHECK((*losses)[0].what == "DiedOfDevice");
  CHECK((*losses)[0].device == "node-a/example.com/gpu/gpu-0");
}

TEST_CASE("A report and the pod's end in one turn are enough") {
  JobStage stage;
  stage.add_pod(0, Health::Healthy);
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  stage.report("train-0", Health::Unhealthy);
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(2));
  CHECK(stage.job().backoff_limit == 4);
}

TEST_CASE("The driver's taint of the device within ten minutes is evidence, later it is not") {
  for (const int wait : {9, 11}) {
    JobStage stage;
    const std::vector<std::string> devices = {"gpu-0", "gpu-1"};
    stage.slice("node-a", devices);
    stage.claim("train-gpu", {"gpu-0"}, "train-0");
    stage.pod({.name = "train-0", .owner = "Job/train", .claim = "train-gpu"});
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.run_for(Seconds(20));
    stage.end_pod("train-0", PodPhase::Failed);
    stage.remove(k8s::Kind::ResourceClaim, "train-gpu");  // a template's claim is gone a second later
    stage.run_for(minutes(wait), Seconds(10));
    CHECK(stage.job().backoff_limit == 3);
    stage.slice("node-a", devices, {"gpu-0"});
    stage.run_for(Seconds(5));
    CAPTURE(wait);
    CHECK(stage.job().backoff_limit == (wait < 10 ? 4 : 3));
  }
}

TEST_CASE("The next holder of the device within ten minutes is evidence, later it is not") {
  for (const int wait : {9, 11}) {
    JobStage stage;
    stage.add_pod(0, Health::Healthy);
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.run_for(Seconds(20));
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(minutes(wait), Seconds(10));
    CHECK(stage.job().backoff_limit == 3);
    stage.pod({.name = "other", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(Seconds(5));
    CHECK(stage.job().backoff_limit == (wait == 9 ? 4 : 3));
  }
}

TEST_CASE("A pod that fails on a healthy device is its Job's own business") {
  JobStage stage;
  stage.node("node-a", 8, 8);
  stage.add_pod(0, Health::Healthy);
  stage.run_for(Seconds(20));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(minutes(12), Seconds(10));
  CHECK(stage.patches().empty());
  CHECK(stage.reasons("train").empty());
}

TEST_CASE("A drop of the node's allocatable is named probable and never credited") {
  JobStage stage;
  stage.add_pod(0, Health::Healthy);
  stage.run_for(Seconds(20));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(5));
  CHECK(stage.reasons("train") == "ProbablyDiedOfDevice");
  CHECK(stage.patches().empty());
}

TEST_CASE("A pod that somebody deleted before it failed has not died of its device") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  stage.pod_named("train-0").meta.deletion = stage.now().wall;
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(5));
  CHECK(stage.patches().empty());
  CHECK(stage.reasons("train").empty());
}

TEST_CASE("A Job that had failed for good is told what it died of, and is recreated once by policy") {
  for (const bool recreate : {false, true}) {
    JobStage stage;
    stage.policy().job_retry->recreate_once = recreate;
    stage.send_policy();
    stage.add_pod(0);
    stage.run_for(Seconds(20));
    stage.fail_job();
    stage.end_pod("train-0", PodPhase::Failed);
    std::vector<Action> actions = stage.turn();
    std::size_t made = 0;
    for (const auto& action : actions) {
      if (const auto* job = std::get_if<job_retry::RecreateJob>(&action)) {
        ++made;
        CHECK(job->uid == "uid-train");
      }
      stage.answer(action);
    }
    CHECK(made == (recreate ? 1 : 0));
    REQUIRE(stage.verdict("train", Reason::JobDiedOfDevice) != nullptr);
    CHECK(stage.verdict("train", Reason::JobDiedOfDevice)->message.starts_with("this Job died of node-a/"));
    k8s::Job replacement;
    replacement.meta.ns = "default";
    replacement.meta.name = "train-r1";
    replacement.meta.uid = "uid-train-r1";
    replacement.meta.labels = {{std::string(kRecreatedFromLabel), "uid-train"}};
    stage.put(replacement);
    for (int i = 0; i < 100; ++i) {
      stage.advance(Seconds(10));
      for (const auto& action : stage.turn()) {
        CHECK(!std::holds_alternative<job_retry::RecreateJob>(action));
        stage.answer(action);
      }
    }
  }
}

TEST_CASE("A Job that may not be made again is told so, in the server's words, and it is tried again later") {
  JobStage stage;
  stage.policy().job_retry->recreate_once = true;
  stage.send_policy();
  stage.add_pod(0);
  stage.run_for(Seconds(20));
  stage.fail_job();
  stage.end_pod("train-0", PodPhase::Failed);
  int sent = 0;
  for (int second = 0; second < 600; second += 10) {
    for (const auto& action : stage.turn()) {
      const bool recreates = std::holds_alternative<job_retry::RecreateJob>(action);
      sent += recreates ? 1 : 0;
      stage.answer(action, recreates ? Status(fail(ErrorKind::Forbidden, "jobs.batch is forbidden")) : Status());
    }
    stage.turn();
    REQUIRE(stage.verdict("train", Reason::Refused) != nullptr);
    CHECK(stage.verdict("train", Reason::Refused)
              ->message.starts_with(
                  "jobRetry.recreate could not make this Job again: Forbidden: jobs.batch is forbidden"));
    stage.advance(Seconds(10));
  }
  CHECK(sent >= 2);
  CHECK(sent <= 10);
}

TEST_CASE("A Job whose evicted pod succeeded is told so loudly, for as long as the Job is there") {
  JobStage stage;
  stage.add_pod(0);
  CHECK(stage.run_for(Seconds(71)) == Names{"train-0"});
  stage.end_pod("train-0", PodPhase::Succeeded);
  stage.run_for(Seconds(1));
  stage.remove_pod("train-0");
  stage.run_for(minutes(90), minutes(1));
  CHECK(stage.verdict("train", Reason::EvictedPodSucceeded) != nullptr);
  CHECK(stage.has_event("train", "EvictedPodSucceeded"));
  const auto events = stage.events().size();
  stage.restart();
  stage.run_for(Seconds(1));
  CHECK(stage.verdict("train", Reason::EvictedPodSucceeded) != nullptr);
  CHECK(stage.events().size() == events);
}

TEST_CASE("In observe mode a Job's lost work is told for an hour after its pod's end, to the millisecond") {
  JobStage stage;
  stage.add_pod(0);
  CHECK(stage.run_for(Seconds(71)) == Names{"train-0"});
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.end_pod("train-0", PodPhase::Succeeded);
  stage.settle();
  const auto ended = stage.now().mono;
  stage.run_for(minutes(59), minutes(1));
  stage.advance(ended + minutes(60) - stage.now().mono - Millis(1));
  stage.settle();
  REQUIRE(stage.verdict("train", Reason::EvictedPodSucceeded) != nullptr);
  REQUIRE(stage.wake_at());
  CHECK((*stage.wake_at() == ended + minutes(60)));
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.verdict("train", Reason::EvictedPodSucceeded) == nullptr);
}

TEST_CASE("An evicted pod that no policy selects is not spoken of") {
  for (const bool selected : {true, false}) {
    JobStage stage;
    stage.add_pod(0);
    CHECK(stage.run_for(Seconds(71)) == Names{"train-0"});
    stage.policy().match.resources = {selected ? "example.com/*" : "other.com/*"};
    stage.send_policy();
    stage.restart();
    stage.settle();
    const auto events = stage.events().size();
    stage.end_pod("train-0", PodPhase::Succeeded);
    stage.run_for(Seconds(30));
    CAPTURE(selected);
    CHECK((stage.verdict("train", Reason::EvictedPodSucceeded) != nullptr) == selected);
    CHECK((stage.events().size() > events) == selected);
  }
}

TEST_CASE("A pod that somebody else evicted and that succeeded is not ours to speak of") {
  JobStage stage;
  stage.add_pod(0, Health::Healthy);
  stage.run_for(Seconds(5));
  stage.pod_named("train-0").conditions = {
      {.type = "DisruptionTarget", .status = "True", .reason = "EvictionByEvictionAPI"}};
  stage.end_pod("train-0", PodPhase::Succeeded);
  stage.run_for(Seconds(5));
  CHECK(stage.reasons("train").empty());
}

TEST_CASE("A replacement that the kubelet rejects is credited once, and three make it a rejecting node") {
  JobStage stage;
  stage.add_pod(9, Health::Healthy);
  stage.job().backoff_limit = 5;
  stage.upsert_job("train");
  for (int pod = 0; pod < 3; ++pod) {
    CHECK(stage.verdict("node-a", Reason::BlackHoleNode) == nullptr);
    const auto name = "train-" + std::to_string(pod);
    stage.pod({.name = name, .owner = "Job/train", .device = "x", .phase = PodPhase::Failed});
    auto& rejected = stage.pod_named(name);
    rejected.allocated.clear();
    rejected.status_reason = "UnexpectedAdmissionError";
    rejected.status_message = "Allocate failed due to requested number of devices unavailable for example.com/gpu";
    rejected.meta.creation = stage.now().wall;
    stage.upsert_pod(name);
    stage.run_for(Seconds(10));
  }
  CHECK(stage.job().backoff_limit == 8);
  CHECK(stage.states() == "spent spent spent");
  CHECK(stage.verdict("node-a", Reason::BlackHoleNode) != nullptr);
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.job().backoff_limit == 8);
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.verdict("node-a", Reason::BlackHoleNode) == nullptr);
}

}  // namespace dhc::test
