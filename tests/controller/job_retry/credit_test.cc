#include <doctest/doctest.h>

#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE(
    "A Job gets the retry back when the incident opens, and its pod is evicted after the settle time, not before") {
  JobStage stage;
  stage.add_pod(0);
  CHECK(stage.run_for(Millis(59'999)).empty());
  CHECK(stage.patches().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle().empty());
  REQUIRE(stage.patches().size() == 1);
  CHECK(stage.job().backoff_limit == 1);
  const auto credits = stage.credits();
  REQUIRE(credits.credits.size() == 1);
  CHECK(credits.limit == 1);
  CHECK(credits.credits[0].pod_uid == "uid-train-0");
  CHECK(credits.credits[0].pod == "train-0");
  CHECK(credits.credits[0].device == "node-a/example.com/gpu/gpu-0");
  CHECK(credits.credits[0].limit == 1);
  CHECK(stage.reasons("train-0") == "Credited WaitingForCredit");
  stage.advance(Millis(9'999));
  CHECK(stage.settle().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"train-0"});
  CHECK(stage.patches().size() == 1);
  CHECK(stage.has_event("train-0", "Credited"));
}

TEST_CASE("A retry that a webhook takes away is given ever more rarely, and that is said") {
  JobStage stage;
  stage.strip({.job = true});
  stage.add_pod(0);
  CHECK(stage.run_for(minutes(6), Seconds(5)).empty());
  REQUIRE(stage.verdict("train-0", Reason::ChangedByOther) != nullptr);
  CHECK(stage.verdict("train-0", Reason::ChangedByOther)
            ->message.contains("accepted it several times, and it is not there"));
  const auto before = stage.patches().size();
  CHECK(before <= 7);
  CHECK(stage.run_for(std::chrono::hours(2), Seconds(10)).empty());
  CHECK(stage.patches().size() <= before + 15);
  stage.strip({});
  CHECK(stage.run_for(minutes(11), Seconds(5)) == Names{"train-0"});
}

TEST_CASE("A retry that a webhook takes away holds nothing else back that its Job is told") {
  JobStage stage;
  stage.strip({.job = true});
  stage.add_pod(0);
  stage.add_pod(1, k8s::Health::Healthy);
  stage.run_for(minutes(20), Seconds(5));
  REQUIRE(stage.verdict("train-0", Reason::ChangedByOther) != nullptr);
  const auto before = stage.patches().size();
  stage.report("train-1", k8s::Health::Unhealthy);
  stage.end_pod("train-1", k8s::PodPhase::Failed);
  stage.run_for(Seconds(1));
  REQUIRE(stage.patches().size() > before);
  const auto& patch = stage.patches()[before];
  CHECK(patch.limit == patch.limit_before);
  REQUIRE(patch.notes.size() == 1);
  CHECK(patch.notes[0].annotation == kLossesAnnotation);
}

TEST_CASE("The patch names the version that was read, and changes limit and annotation together") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(minutes(1));
  REQUIRE(stage.patches().size() == 1);
  const auto& patch = stage.patches()[0];
  CHECK(patch.uid == "uid-train");
  CHECK(!patch.resource_version.empty());
  CHECK(patch.limit_before == 0);
  CHECK(patch.limit == 1);
  CHECK(!patch.by_test);
  REQUIRE(patch.notes.size() == 1);
  CHECK(patch.notes[0].annotation == kRetryCreditsAnnotation);
}

TEST_CASE("A restart between credit and eviction credits nothing twice, and the settle time begins anew") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(Seconds(65));
  CHECK(stage.job().backoff_limit == 1);
  stage.restart();
  CHECK(stage.run_for(Millis(9'999)).empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"train-0"});
  CHECK(stage.job().backoff_limit == 1);
  CHECK(stage.patches().size() == 1);
}

namespace {

/// What the one eviction that was ordered rests on of its Job.
std::optional<eviction::RetryTerms> terms_of_eviction(JobStage& stage) {
  std::optional<eviction::RetryTerms> terms;
  stage.answer_evictions([&](const eviction::EvictPod& evict) {
    terms = evict.retry;
    return Status{};
  });
  CHECK(stage.run_for(minutes(3)).size() == 1);
  return terms;
}

}  // namespace

TEST_CASE("An eviction says what it rests on of its Job: the credit, or the limit where no record says it") {
  SUBCASE("the credit") {
    JobStage stage;
    stage.add_pod(0);
    const auto terms = terms_of_eviction(stage);
    REQUIRE(terms);
    CHECK(terms->job_name == "train");
    CHECK(terms->job_uid == "uid-train");
    CHECK(terms->job_version == stage.job().meta.resource_version);
    CHECK(terms->has_credit);
  }
  SUBCASE("the limit, after an operator took the record away") {
    JobStage stage;
    stage.add_pod(0);
    stage.run_for(Seconds(65));
    stage.job().meta.annotations.clear();
    stage.upsert_job("train");
    const auto terms = terms_of_eviction(stage);
    REQUIRE(terms);
    CHECK_FALSE(terms->has_credit);
    CHECK(terms->limit == 1);
  }
  SUBCASE("the limit, where no policy credits") {
    JobStage stage;
    stage.policy().job_retry.reset();
    stage.send_policy();
    stage.add_pod(0);
    stage.job().backoff_limit = 3;
    stage.job().failed = 1;
    stage.upsert_job("train");
    const auto terms = terms_of_eviction(stage);
    REQUIRE(terms);
    CHECK(terms->limit == 3);
    CHECK_FALSE(terms->has_credit);
  }
  SUBCASE("nothing, where the loss costs nothing or may end it") {
    JobStage stage;
    stage.policy().job_retry->credit = false;
    stage.policy().job_retry->not_creditable = JobRetryRules::NotCreditable::Evict;
    stage.send_policy();
    stage.add_pod(0);
    CHECK_FALSE(terms_of_eviction(stage));
  }
}

TEST_CASE("maxPerJob bounds the credits, and the pod after the last is held with its reason, or evicted by policy") {
  for (const bool evict : {false, true}) {
    JobStage stage;
    stage.policy().job_retry->max_per_job = 2;
    if (evict) stage.policy().job_retry->not_creditable = JobRetryRules::NotCreditable::Evict;
    stage.send_policy();
    for (int pod = 0; pod < 3; ++pod) stage.add_pod(pod);
    const auto gone = stage.run_counted(minutes(3));
    CHECK(stage.job().backoff_limit == 2);
    CHECK(stage.credits().credits.size() == 2);
    CHECK(gone == (evict ? Names{"train-0", "train-1", "train-2"} : Names{"train-0", "train-1"}));
    CHECK((stage.verdict("train-2", Reason::NotCreditable) != nullptr) == !evict);
    if (!evict) CHECK(stage.verdict("train-2", Reason::CreditLimitReached) != nullptr);
  }
}

TEST_CASE("A pod beyond maxPerJob takes a retry of the Job's own, and none that another pod was given") {
  for (const std::int64_t own : {0, 1}) {
    CAPTURE(own);
    JobStage stage;
    stage.policy().job_retry->max_per_job = 2;
    stage.policy().evict->no_replacement_wait = Seconds(0);
    stage.policy().job_retry->settle = minutes(5);  // longer than anybody waits for a sibling
    stage.send_policy();
    for (int pod = 0; pod < 4; ++pod) stage.add_pod(pod);
    stage.job().backoff_limit = own;
    stage.upsert_job("train");
    // Those with a credit wait for settle: whoever has none must not be faster.
    const auto early = stage.run_counted(Seconds(65));
    CHECK(stage.job().backoff_limit == own + 2);
    CHECK(early.size() == static_cast<std::size_t>(own));
    CHECK(early.size() + stage.run_counted(minutes(8)).size() == static_cast<std::size_t>(own + 2));
    CHECK(stage.verdict("train-3", Reason::NotCreditable) != nullptr);
  }
}

TEST_CASE(
    "Several pods of one Job on bad devices are one incident: one patch, and evictions in one turn whatever perOwner") {
  JobStage stage;
  stage.limits().per_owner = 1;
  stage.send_policy();
  for (int pod = 0; pod < 3; ++pod) stage.add_pod(pod);
  stage.run_for(Seconds(60));
  REQUIRE(stage.patches().size() == 1);
  CHECK(stage.job().backoff_limit == 3);
  stage.advance(Seconds(9));
  CHECK(stage.settle().empty());
  stage.advance(Seconds(1));
  CHECK(evicted(stage.turn()) == Names{"train-0", "train-1", "train-2"});
}

TEST_CASE("The limits hold for the pods of one Job too: what does not fit into a turn follows as slots come free") {
  JobStage stage;
  stage.policy().job_retry->max_per_job = 8;
  stage.policy().evict->no_replacement_wait = Seconds(0);  // the node is full
  stage.limits().max_in_flight = 5;
  stage.limits().evictions_per_minute = 1000;
  stage.send_policy();
  stage.node("node-a", 8, 0);
  for (int pod = 0; pod < 8; ++pod) stage.add_pod(pod);
  const auto gone = stage.run_for(Seconds(75));
  CHECK(gone.size() == 5);
  CHECK(stage.patches().size() == 1);
  CHECK(stage.job().backoff_limit == 8);
  for (const auto& name : gone) stage.remove_pod(name);
  CHECK(stage.run_for(Seconds(2)).size() == 3);
}

TEST_CASE("Of one Job's pods no more are evicted at once than perMinute has left") {
  JobStage stage;
  stage.policy().job_retry->max_per_job = 8;
  stage.policy().evict->no_replacement_wait = Seconds(0);  // the node is full
  stage.limits().evictions_per_minute = 3;
  stage.send_policy();
  stage.node("node-a", 8, 0);
  for (int pod = 0; pod < 8; ++pod) stage.add_pod(pod);
  CHECK(stage.run_for(Seconds(75)).size() == 3);
  CHECK(stage.run_for(Seconds(60)).size() == 3);
  CHECK(stage.run_for(Seconds(60)).size() == 2);
  CHECK(stage.job().backoff_limit == 8);
}

TEST_CASE("Pods of one Job whose incidents open seconds apart wait for each other") {
  JobStage stage;
  stage.add_pod(0);
  stage.add_pod(1, Health::Healthy);
  stage.run_for(Seconds(5));
  stage.report("train-1", Health::Unhealthy);
  CHECK(stage.run_for(Seconds(66)).empty());
  CHECK(stage.verdict("train-0", Reason::WaitingForSiblings) != nullptr);
  stage.run_for(Seconds(3));
  CHECK(stage.run_for(Seconds(1)) == Names{"train-0", "train-1"});
}

TEST_CASE("Only the pod on the bad device of a parallel Job is credited and evicted") {
  JobStage stage;
  stage.node("node-a", 8, 7);
  for (int pod = 0; pod < 5; ++pod) stage.add_pod(pod, pod == 3 ? Health::Unhealthy : Health::Healthy);
  CHECK(stage.run_for(minutes(5)) == Names{"train-3"});
  CHECK(stage.job().backoff_limit == 1);
}

TEST_CASE("An operator's higher limit is the base of the next credit") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(minutes(1));
  stage.job().backoff_limit = 5;
  stage.upsert_job("train");
  stage.add_pod(1);
  stage.run_for(minutes(2));
  CHECK(stage.job().backoff_limit == 6);
  CHECK(stage.credits().limit == 6);
}

TEST_CASE("In observe mode, while paused or braked no Job is written") {
  JobStage observing;
  observing.policy().mode = Mode::Observe;
  observing.send_policy();
  observing.add_pod(0);
  observing.run_for(minutes(3));
  CHECK(observing.patches().empty());
  CHECK(observing.reasons("train-0") == "WouldEvict WouldCredit");

  JobStage paused;
  paused.limits().paused = true;
  paused.send_policy();
  paused.add_pod(0);
  paused.run_for(minutes(3));
  CHECK(paused.patches().empty());
  CHECK(paused.reasons("train-0") == "Paused");

  JobStage braked;
  braked.limits().brake_at_least = 1;
  braked.limits().brake_within = minutes(10);
  braked.limits().brake_percent = 1;
  braked.send_policy();
  braked.add_pod(0);
  braked.run_for(minutes(3));
  CHECK(braked.patches().empty());
  CHECK(braked.verdict("train-0", Reason::Braked) != nullptr);
}

TEST_CASE("After three conflicts in a row the patch tests what matters instead of the version") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(Seconds(59));
  std::vector<bool> by_test;
  for (int attempt = 0; attempt < 5; ++attempt) {
    stage.advance(Seconds(attempt == 0 ? 1 : 0));
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& action : stage.turn()) {
        const auto* patch = std::get_if<job_retry::PatchJob>(&action);
        if (patch == nullptr) {
          stage.answer(action);
          continue;
        }
        by_test.push_back(patch->by_test);
        stage.answer(action, fail(ErrorKind::Conflict, "the object has been modified"));
      }
    }
    stage.upsert_job("train");  // the other writer's version arrives
  }
  CHECK(by_test == std::vector<bool>{false, false, false, true, true});
  CHECK(stage.verdict("train-0", Reason::WaitingForCredit)->message.find("object has been modified") !=
        std::string::npos);
}

TEST_CASE("A credit whose answer never came is seen on the Job and not given again") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  const auto actions = stage.turn();
  for (const auto& action : actions) {
    const auto* patch = std::get_if<job_retry::PatchJob>(&action);
    stage.answer(action, patch == nullptr ? Status() : fail(ErrorKind::TimedOut, "no answer"));
    if (patch == nullptr) continue;
    stage.job().backoff_limit = patch->limit;
    stage.job().meta.annotations = {{patch->notes[0].annotation, patch->notes[0].text}};
    stage.upsert_job("train");
  }
  CHECK(stage.run_for(minutes(2)) == Names{"train-0"});
  CHECK(stage.job().backoff_limit == 1);
  CHECK(stage.patches().size() == 1);
}

TEST_CASE("A change of the Job whose answer never came holds its pod until the watch of Jobs would have shown it") {
  JobStage stage;
  stage.policy().recover.healthy_for = Seconds(30);
  stage.policy().job_retry->settle = Seconds(40);
  stage.send_policy();
  stage.add_pod(0);
  CHECK(stage.run_for(Seconds(70)).empty());
  REQUIRE(stage.states() == "given");
  stage.report("train-0", Health::Healthy);
  bool is_lost = false;
  for (int second = 0; second < 300 && !is_lost; ++second) {
    for (const auto& action : stage.turn()) {
      is_lost = is_lost || std::holds_alternative<job_retry::PatchJob>(action);
      stage.answer(action, is_lost ? fail(ErrorKind::TimedOut, "no answer") : Status());
    }
    stage.advance(Seconds(1));
  }
  REQUIRE(is_lost);
  stage.report("train-0", Health::Unhealthy);
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.verdict("train-0", Reason::WaitingForCredit) != nullptr);
  CHECK(stage.run_for(minutes(1)) == Names{"train-0"});
}

}  // namespace dhc::test
