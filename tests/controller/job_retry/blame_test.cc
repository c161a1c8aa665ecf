// What a Job's dead pod is blamed for, and what is done about it.
#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::minutes;

namespace {

/// Turns through time, and counts the Jobs made anew.
int recreations(JobStage& stage, Millis time, Millis step = Seconds(1)) {
  int made = 0;
  const auto turn = [&] {
    for (const auto& action : stage.turn()) {
      made += std::holds_alternative<job_retry::RecreateJob>(action) ? 1 : 0;
      stage.answer(action);
    }
  };
  for (Millis passed{0}; passed <= time; passed += step) {
    turn();
    stage.advance(step);
  }
  return made;
}

void fail_job(JobStage& stage, const std::string& reason) {
  stage.job().conditions = {
      {.type = "Failed", .status = "True", .reason = reason, .message = {}, .last_transition = stage.now().wall}};
  stage.upsert_job("train");
}

JobStage with_limit(std::int64_t limit, Health health = Health::Unhealthy) {
  JobStage stage;
  stage.add_pod(0, health);
  stage.job().backoff_limit = limit;
  stage.upsert_job("train");
  return stage;
}

std::vector<JobLoss> losses(JobStage& stage) {
  const auto text = k8s::find(stage.job().meta.annotations, kLossesAnnotation);
  return text ? parse_losses(*text).value() : std::vector<JobLoss>{};
}

}  // namespace

TEST_CASE("A Job that fails long after a loss that was paid for did not die of that device") {
  for (const auto* reason : {"DeadlineExceeded", "BackoffLimitExceeded"}) {
    auto stage = with_limit(3);
    stage.policy().job_retry->recreate_once = true;
    stage.send_policy();
    stage.run_for(Seconds(20));
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(Seconds(2));
    REQUIRE(stage.job().backoff_limit == 4);
    stage.run_for(minutes(40), Seconds(30));
    const auto patches = stage.patches().size();
    fail_job(stage, reason);
    CHECK(recreations(stage, minutes(1)) == 0);
    CHECK(stage.verdict("train", Reason::JobDiedOfDevice) == nullptr);
    CHECK(stage.patches().size() == patches);
  }
}

TEST_CASE("A Job that fails by its deadline when its pod dies of a device did not die of it") {
  auto stage = with_limit(0);
  stage.policy().job_retry->recreate_once = true;
  stage.send_policy();
  stage.run_for(Seconds(20));
  fail_job(stage, "DeadlineExceeded");
  stage.end_pod("train-0", PodPhase::Failed);
  CHECK(recreations(stage, minutes(1)) == 0);
  CHECK(stage.verdict("train", Reason::JobDiedOfDevice) == nullptr);
}

TEST_CASE("A loss that could not be paid for and ends the Job is one loss, that of the Job") {
  auto stage = with_limit(0);
  stage.policy().job_retry->max_per_job = 0;
  stage.send_policy();
  stage.run_for(Seconds(20));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(2));
  REQUIRE(losses(stage).size() == 1);
  CHECK(losses(stage)[0].what == "DiedOfDevice");
  fail_job(stage, "BackoffLimitExceeded");
  stage.run_for(Seconds(2));
  REQUIRE(losses(stage).size() == 1);
  CHECK(losses(stage)[0].what == "JobDiedOfDevice");
}

TEST_CASE("The dead pod of a Job that is not ours is spoken of, and nothing is written") {
  using Change = void (*)(k8s::Job&, k8s::Pod&);
  const std::vector<Change> changes = {
      [](k8s::Job& job, k8s::Pod&) { job.managed_by = "example.com/queue"; },
      [](k8s::Job& job, k8s::Pod&) {
        job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "set", "u"};
      },
      [](k8s::Job& job, k8s::Pod&) { job.meta.labels = {{"kueue.x-k8s.io/queue-name", "q"}}; },
      [](k8s::Job& job, k8s::Pod&) { job.suspended = true; },
      [](k8s::Job& job, k8s::Pod&) { job.meta.annotations = {{"device-health.io/opt-out", "true"}}; },
      [](k8s::Job&, k8s::Pod& pod) { pod.meta.annotations = {{"device-health.io/opt-out", "true"}}; },
  };
  for (const bool dead : {false, true}) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      CAPTURE(i);
      auto stage = with_limit(3);
      stage.policy().job_retry->recreate_once = true;
      stage.send_policy();
      changes[i](stage.job(), stage.pod_named("train-0"));
      stage.upsert_job("train");
      stage.upsert_pod("train-0");
      stage.run_for(Seconds(20));
      if (dead) fail_job(stage, "BackoffLimitExceeded");
      stage.end_pod("train-0", PodPhase::Failed);
      CHECK(recreations(stage, Seconds(5)) == 0);
      CHECK(stage.patches().empty());
      CHECK(stage.verdict("train", dead ? Reason::JobDiedOfDevice : Reason::DiedOfDevice) != nullptr);
    }
  }
}

TEST_CASE("An evicted pod that succeeded is noted on its Job only where a policy may write to it") {
  for (const bool covered : {false, true}) {
    JobStage stage;
    stage.add_pod(0);
    stage.run_for(Seconds(71));
    REQUIRE(stage.pod_named("train-0").meta.deletion.has_value());
    if (!covered) stage.policy().job_retry.reset();
    stage.send_policy();
    stage.run_for(Seconds(1));
    const auto before = stage.patches().size();
    stage.end_pod("train-0", PodPhase::Succeeded);
    stage.run_for(Seconds(5));
    CHECK(stage.patches().size() == before + (covered ? 1 : 0));
    CHECK(stage.verdict("train", Reason::EvictedPodSucceeded) != nullptr);
  }
}

TEST_CASE("A dead pod follows the policy whose signal its device gave, not the first that selects it") {
  for (const bool observing : {true, false}) {
    JobStage stage;
    auto& policies = stage.whole_policy().policies;
    policies.insert(policies.begin(), policies.front());
    policies[0].name = "xid-79";
    policies[0].priority = 200;
    policies[0].match.message = MessagePattern::compile("Xid 79").value();
    // Either it would credit where the one that speaks only observes, or the other way round.
    if (observing) {
      policies[1].mode = Mode::Observe;
    } else {
      policies[0].job_retry.reset();
    }
    stage.send_policy();
    stage.add_pod(0, Health::Healthy);
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.report("train-0", Health::Unhealthy, "Xid 48");
    stage.run_for(Seconds(20));
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(Seconds(2));
    CHECK(stage.patches().empty() == observing);
    CHECK(stage.job().backoff_limit == (observing ? 3 : 4));
    REQUIRE(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
    CHECK(stage.verdict("train", Reason::DiedOfDevice)->policy == "p");
  }
}

TEST_CASE("While the brake holds the device a dead pod's Job is not written, and afterwards once") {
  JobStage stage;
  stage.limits().brake_at_least = 1;
  stage.limits().brake_percent = 1;
  stage.send_policy();
  stage.add_pod(0);
  stage.job().backoff_limit = 3;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(minutes(4), Seconds(5));
  CHECK(stage.patches().empty());
  CHECK(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
  // An operator has looked at it.
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{"device-health.io/brake-release", format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.whole_policy().brake_release = format_rfc3339(stage.now().wall);
  stage.send_policy();
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.patches().size() == 1);
  CHECK(stage.job().backoff_limit == 4);
}

TEST_CASE("A pod whose claim is deallocated before its end is seen has still died of its device") {
  for (const int order : {0, 1, 2}) {
    CAPTURE(order);
    JobStage stage;
    stage.claim("train-claim", {"gpu-0"}, "train-0");
    stage.pod({.name = "train-0", .owner = "Job/train", .claim = "train-claim"});
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.run_for(Seconds(5));
    stage.report("train-0", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(20));
    const auto empty_claim = [&] {
      auto& claim = stage.claim("train-claim", {}, "train-0");
      claim.allocated = false;
    };
    if (order == 2) stage.end_pod("train-0", PodPhase::Failed);
    empty_claim();
    if (order == 0) stage.run_for(Seconds(2));
    if (order != 2) stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(Seconds(2));
    CHECK(stage.job().backoff_limit == 4);
    CHECK(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
  }
}

TEST_CASE("More losses than a Job's annotation holds are written once") {
  JobStage stage;
  stage.policy().job_retry->max_per_job = 1;
  stage.send_policy();
  stage.node("node-a", 64, 32);
  stage.advance(Millis(500));
  for (int pod = 0; pod < 25; ++pod) stage.add_pod(pod);
  stage.job().backoff_limit = 50;
  stage.upsert_job("train");
  stage.run_for(Seconds(20));
  for (int pod = 0; pod < 25; ++pod) stage.end_pod("train-" + std::to_string(pod), PodPhase::Failed);
  stage.run_for(Seconds(5));
  const auto patches = stage.patches().size();
  CHECK(patches == 1);
  CHECK(losses(stage).size() == kMostLosses);
  stage.run_for(minutes(5), Seconds(5));
  CHECK(stage.patches().size() == patches);
}

TEST_CASE("What an operator removed from a Job is not written again") {
  auto dead = with_limit(3);
  dead.run_for(Seconds(20));
  dead.end_pod("train-0", PodPhase::Failed);
  dead.run_for(Seconds(2));
  REQUIRE(dead.job().backoff_limit == 4);
  const auto patches = dead.patches().size();
  dead.job().meta.annotations = {};
  dead.upsert_job("train");
  dead.run_for(minutes(2), Seconds(5));
  CHECK(dead.patches().size() == patches);

  auto running = with_limit(3);
  running.run_for(Seconds(62));
  REQUIRE(running.job().backoff_limit == 4);
  running.job().meta.annotations = {};
  running.upsert_job("train");
  CHECK(running.run_for(minutes(1)) == std::vector<std::string>{"train-0"});
  CHECK(running.patches().size() == 1);

  auto undone = with_limit(3);
  undone.run_for(Seconds(62));
  undone.job().meta.annotations = {};
  undone.job().backoff_limit = 3;
  undone.upsert_job("train");
  CHECK(undone.run_for(minutes(1)).empty());
  CHECK(undone.patches().size() == 1);
  CHECK(undone.verdict("train-0", Reason::NotCreditable) != nullptr);
}

TEST_CASE("A rejected pod is its node's fault only if the node has lost what the kubelet says it lacked") {
  for (const bool lost : {false, true}) {
    for (const bool named : {false, true}) {
      CAPTURE(lost);
      CAPTURE(named);
      JobStage stage;
      if (!lost) stage.node("node-a", 8, 8);
      stage.add_pod(9, Health::Healthy);
      stage.job().backoff_limit = 5;
      stage.job().meta.annotations = {
          {std::string(kRetryCreditsAnnotation),
           R"({"limit":5,"credits":[{"podUID":"old","pod":"old","device":"d","at":"2026-11-20T11:00:00Z","limit":5,"state":"spent"}]})"}};
      stage.upsert_job("train");
      stage.pod({.name = "train-0", .owner = "Job/train", .device = "x", .phase = PodPhase::Failed});
      auto& rejected = stage.pod_named("train-0");
      rejected.allocated.clear();
      rejected.status_reason = "UnexpectedAdmissionError";
      rejected.status_message = named ? "Allocate failed due to requested number of devices unavailable for "
                                        "example.com/gpu. Requested: 1, Available: 0, which is unexpected"
                                      : "Allocate failed due to not enough cpus available to satisfy request";
      rejected.meta.creation = stage.now().wall;
      stage.upsert_pod("train-0");
      stage.run_for(Seconds(10));
      CHECK(stage.job().backoff_limit == (lost && named ? 6 : 5));
      CHECK((stage.verdict("train", Reason::RejectedByKubelet) != nullptr) == (lost && named));
    }
  }
}

TEST_CASE("What tenants write into their Jobs' losses is bounded, and takes no other's room") {
  Stage stage;
  const auto job = [&](const std::string& ns, int number, std::size_t losses) {
    k8s::Job made;
    made.meta.ns = ns;
    made.meta.name = "j-" + std::to_string(number);
    made.meta.uid = ns + "-" + std::to_string(number);
    made.meta.resource_version = "1";
    made.suspended = true;
    const std::vector<JobLoss> all(losses, {.what = "JobDiedOfDevice",
                                            .pod_uid = "u",
                                            .pod = "p\x1b[31m" + std::string(5'000, 'x'),
                                            .device = "d",
                                            .at = WallTime{std::chrono::hours(number)}});
    made.meta.annotations = {{std::string(kLossesAnnotation), format_losses(all)}};
    stage.put(std::move(made));
  };
  for (int i = 0; i < 500; ++i) job("loud", i, 2);
  job("many", 1, kMostLosses + 1);
  job("quiet", 7, 1);
  stage.settle();
  std::size_t said = 0;
  bool is_quiet_told = false;
  std::string rest;
  for (const auto& verdict : stage.verdicts()) {
    if (verdict.reason != Reason::JobDiedOfDevice) continue;
    ++said;
    CHECK(verdict.message.size() < 1'000);
    CHECK(verdict.message.find('\x1b') == std::string::npos);
    CHECK(verdict.subject.ns != "many");
    is_quiet_told = is_quiet_told || verdict.subject.ns == "quiet";
    if (verdict.subject.kind == "Configuration") rest = verdict.message;
  }
  CHECK(said == 252);  // of each Job one, for the two are of one device
  CHECK(is_quiet_told);
  CHECK(rest == "250 more Jobs carry losses in their annotation device-health.io/losses; 251 are shown");
}

}  // namespace dhc::test
