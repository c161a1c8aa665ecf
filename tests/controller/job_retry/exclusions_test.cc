#include <functional>

#include <doctest/doctest.h>

#include "tests/controller/job_retry/failure_rules.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;
using NotCreditable = JobRetryRules::NotCreditable;

namespace {

k8s::JobFailureRule on_code(RuleAction action, std::int64_t code) {
  return {.action = action,
          .on_pod_conditions = {},
          .on_exit_codes = k8s::JobFailureRule::ExitCodes{.container = "main", .in = true, .values = {code}}};
}

struct Case {
  Reason reason;
  std::function<void(k8s::Job&, k8s::Pod&)> change;
};

JobStage stage_for(const Case& what, Millis evict_after = {}) {
  JobStage stage;
  stage.policy().evict->after = evict_after;
  stage.send_policy();
  stage.add_pod(0);
  what.change(stage.job(), stage.pod_named("train-0"));
  stage.upsert_job("train");
  stage.upsert_pod("train-0");
  return stage;
}

}  // namespace

TEST_CASE("What cannot be credited, and would end its Job, is held by default, evicted by policy, and never written") {
  const std::vector<Case> cases = {
      {Reason::JobManagedByOther, [](auto& job, auto&) { job.managed_by = "example.com/queue"; }},
      {Reason::JobOwnedByOther,
       [](auto& job, auto&) { job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "set", "u"}; }},
      {Reason::JobOwnedByOther, [](auto& job, auto&) { job.meta.has_other_owner = true; }},
      {Reason::JobOwnedByOther, [](auto& job, auto&) { job.meta.labels = {{"kueue.x-k8s.io/queue-name", "q"}}; }},
      {Reason::JobSuspended, [](auto& job, auto&) { job.suspended = true; }},
      {Reason::FailureRuleMatches,
       [](auto& job, auto&) { job.failure_rules = {on_condition(RuleAction::FailJob, "DisruptionTarget")}; }},
      {Reason::FailureRuleMatches, [](auto& job, auto&) { job.failure_rules = {on_code(RuleAction::FailIndex, 143)}; }},
      {Reason::FailureRuleMatches,
       [](auto& job, auto& pod) {
         job.failure_rules = {on_condition(RuleAction::FailJob, "example.com/XidSeen"),
                              on_condition(RuleAction::Ignore, "DisruptionTarget")};
         pod.conditions = {{.type = "example.com/XidSeen", .status = "True"}};
       }},
      {Reason::IndexOutOfRetries,
       [](auto& job, auto& pod) {
         job.backoff_limit = 2147483647;
         job.backoff_limit_per_index = 1;
         pod.meta.annotations = {{"batch.kubernetes.io/job-completion-index", "3"},
                                 {"batch.kubernetes.io/job-index-failure-count", "1"}};
       }},
      {Reason::CreditRecordUnreadable,
       [](auto& job, auto&) { job.meta.annotations = {{"device-health.io/retry-credits", "three"}}; }},
  };
  for (const auto& what : cases) {
    CAPTURE(to_string(what.reason));
    auto held = stage_for(what);
    CHECK(held.run_for(minutes(3), Seconds(5)).empty());
    CHECK(held.verdict("train-0", what.reason) != nullptr);
    CHECK(held.verdict("train-0", Reason::NotCreditable) != nullptr);
    CHECK(held.patches().empty());

    auto evicting = stage_for(what);
    evicting.policy().job_retry->not_creditable = NotCreditable::Evict;
    evicting.send_policy();
    CHECK(evicting.run_for(minutes(3), Seconds(5)) == Names{"train-0"});
    CHECK(evicting.patches().empty());
  }
}

TEST_CASE("A Job of another controller with a retry to spare pays for the loss itself, and Hold alone holds its pod") {
  const std::vector<Case> cases = {
      {Reason::JobOwnedByOther,
       [](auto& job, auto&) { job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "set", "u"}; }},
      {Reason::JobOwnedByOther, [](auto& job, auto&) { job.meta.labels = {{"kueue.x-k8s.io/queue-name", "q"}}; }},
      {Reason::JobManagedByOther, [](auto& job, auto&) { job.managed_by = "example.com/queue"; }},
      {Reason::JobSuspended, [](auto& job, auto&) { job.suspended = true; }},
      {Reason::JobSuspended,
       [](auto& job, auto&) {
         job.suspended = true;  // by Kueue: the Job controller is about to delete the pods
         job.meta.labels = {{"kueue.x-k8s.io/queue-name", "q"}};
       }},
      {Reason::CreditRecordUnreadable,
       [](auto& job, auto&) { job.meta.annotations = {{"device-health.io/retry-credits", "three"}}; }},
  };
  for (const auto& what : cases) {
    CAPTURE(to_string(what.reason));
    for (const auto rule : {NotCreditable::HoldIfFatal, NotCreditable::Hold}) {
      auto stage = stage_for(what);
      stage.policy().job_retry->not_creditable = rule;
      stage.send_policy();
      stage.job().backoff_limit = 1;
      stage.upsert_job("train");
      // Who counts the losses of a managed Job, what was credited before: what is not known may end the Job.
      const bool goes = rule == NotCreditable::HoldIfFatal && what.reason == Reason::JobOwnedByOther;
      CHECK(stage.run_for(minutes(3), Seconds(5)) == (goes ? Names{"train-0"} : Names{}));
      CHECK(stage.patches().empty());
      CHECK((stage.verdict("train-0", Reason::NotCreditable) != nullptr) == !goes);
    }
  }
}

TEST_CASE("The last retry of a Job of another controller is not spent on hardware, and the verdict says both reasons") {
  auto stage = stage_for({Reason::JobOwnedByOther, [](auto& job, auto&) {
                            job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "set", "u"};
                            job.backoff_limit = 1;
                            job.failed = 1;
                          }});
  CHECK(stage.run_for(minutes(3), Seconds(5)).empty());
  const auto* held = stage.verdict("train-0", Reason::NotCreditable);
  REQUIRE(held != nullptr);
  CHECK(
      held->message ==
      "the loss would end Job train: backoffLimit is 1, 1 of its pods have failed and 0 more are going; Job train "
      "belongs to JobSet set, which decides about its retries; jobRetry.whenNotCreditable: Evict evicts all the same");
}

TEST_CASE("A podFailurePolicy that ignores the loss frees the pod of a Job of another controller, too") {
  for (const auto* condition : {"DisruptionTarget", "device-health.io/DeviceUnhealthy"}) {
    CAPTURE(condition);
    auto stage = stage_for({Reason::CreditNotNeeded, [&](auto& job, auto&) {
                              job.meta.controller = k8s::OwnerRef{"jobset.x-k8s.io/v1alpha2", "JobSet", "set", "u"};
                              job.failure_rules = {on_condition(RuleAction::Ignore, condition)};
                            }});
    stage.policy().job_retry->not_creditable = NotCreditable::Hold;
    stage.send_policy();
    CHECK(stage.run_for(minutes(3), Seconds(5)) == Names{"train-0"});
    CHECK(stage.patches().empty());
  }
}

TEST_CASE("No credit is given where the loss costs the Job nothing, and the pod is evicted") {
  const std::vector<Case> cases = {
      {Reason::CreditNotNeeded,
       [](auto& job, auto&) { job.failure_rules = {on_condition(RuleAction::Ignore, "DisruptionTarget")}; }},
      {Reason::CreditNotNeeded,
       [](auto& job, auto&) {
         job.failure_rules = {on_code(RuleAction::FailJob, 42), on_condition(RuleAction::Ignore, "DisruptionTarget")};
       }},
      {Reason::CreditNotNeeded,
       [](auto& job, auto&) {
         job.failure_rules = {on_condition(RuleAction::Ignore, "device-health.io/DeviceUnhealthy")};
       }},
      {Reason::CreditNotNeeded, [](auto& job, auto&) { job.backoff_limit = 2147483647; }},
      {Reason::CreditNotNeeded,
       [](auto& job, auto& pod) {
         job.backoff_limit = 2147483647;
         job.backoff_limit_per_index = 1;
         pod.meta.annotations = {{"batch.kubernetes.io/job-index-failure-count", "0"}};
       }},
  };
  for (const auto& what : cases) {
    auto stage = stage_for(what);
    stage.run_for(Seconds(60));
    CHECK(stage.run_for(minutes(2), Seconds(5)).size() + stage.pod_named("train-0").meta.deletion.has_value() >= 1);
    CHECK(stage.patches().empty());
    CHECK(stage.pod_named("train-0").meta.deletion.has_value());
  }
}

TEST_CASE("A Job that looks for our condition is credited and its pod evicted without it only where it does not stay") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().failure_rules = {on_condition(RuleAction::Ignore, "device-health.io/DeviceUnhealthy")};
  stage.upsert_job("train");
  stage.advance(Seconds(60));
  for (int i = 0; i < 100; ++i) {
    for (const auto& action : stage.turn()) stage.answer(action);  // answered well, and never seen on the pod
    stage.advance(Seconds(1));
  }
  CHECK(stage.patches().empty());
  CHECK(!stage.pod_named("train-0").meta.deletion);
  CHECK(stage.verdict("train-0", Reason::WaitingForCondition) != nullptr);
  // The third time tells that a webhook takes it away: the Job will count the loss, and gets the retry back for it.
  stage.strip({.condition = true});
  CHECK(stage.run_for(minutes(2)) == Names{"train-0"});
  CHECK(stage.patches().size() == 1);
}

TEST_CASE("Where an exit code may count and another may not, the retry is given back") {
  auto stage = stage_for({Reason::Credited, [](auto& job, auto&) {
                            job.failure_rules = {on_code(RuleAction::Count, 137),
                                                 on_condition(RuleAction::Ignore, "DisruptionTarget")};
                          }});
  CHECK(stage.run_for(minutes(2)) == Names{"train-0"});
  CHECK(stage.job().backoff_limit == 1);
}

TEST_CASE("Where the exit code of a program that ends itself may count, the retry is given back") {
  const k8s::JobFailureRule not_in{
      .action = RuleAction::Count,
      .on_pod_conditions = {},
      .on_exit_codes = k8s::JobFailureRule::ExitCodes{.container = {}, .in = false, .values = {137, 143}}};
  for (const auto& first : {on_code(RuleAction::Count, 1), not_in}) {
    auto stage = stage_for({Reason::Credited, [&](auto& job, auto&) {
                              job.failure_rules = {first, on_condition(RuleAction::Ignore, "DisruptionTarget")};
                            }});
    stage.run_for(Seconds(62));
    CHECK(stage.job().backoff_limit == 1);
  }
}

TEST_CASE("A loss that is ignored unless the program exits with a code that ends the Job is said so") {
  auto stage = stage_for({Reason::CreditNotNeeded,
                          [](auto& job, auto&) {
                            job.failure_rules = {on_code(RuleAction::FailJob, 42),
                                                 on_condition(RuleAction::Ignore, "DisruptionTarget")};
                          }},
                         minutes(5));
  stage.run_for(Seconds(61));
  CHECK(stage.patches().empty());
  REQUIRE(stage.verdict("train-0", Reason::CreditNotNeeded) != nullptr);
  CHECK(stage.verdict("train-0", Reason::CreditNotNeeded)->message.find("exit code 42") != std::string::npos);
}

TEST_CASE("A condition that every ended pod has is known before the end") {
  auto stage = stage_for({Reason::CreditNotNeeded,
                          [](auto& job, auto& pod) {
                            job.failure_rules = {{.action = RuleAction::Ignore,
                                                  .on_pod_conditions = {{.type = "Ready", .status = "False"}},
                                                  .on_exit_codes = {}}};
                            pod.conditions = {{.type = "Ready", .status = "True"}};
                          }},
                         minutes(5));
  stage.run_for(Seconds(61));
  CHECK(stage.verdict("train-0", Reason::CreditNotNeeded) != nullptr);
  CHECK(stage.patches().empty());
}

TEST_CASE("The loss of an index that has retries left costs it one, and is said so") {
  auto stage = stage_for({Reason::CreditNotNeeded,
                          [](auto& job, auto& pod) {
                            job.backoff_limit = 2147483647;
                            job.backoff_limit_per_index = 1;
                            pod.meta.annotations = {{"batch.kubernetes.io/job-completion-index", "3"},
                                                    {"batch.kubernetes.io/job-index-failure-count", "0"}};
                          }},
                         minutes(5));
  stage.run_for(Seconds(61));
  REQUIRE(stage.verdict("train-0", Reason::CreditNotNeeded) != nullptr);
  const auto& message = stage.verdict("train-0", Reason::CreditNotNeeded)->message;
  CHECK(message.find("index 3") != std::string::npos);
  CHECK(message.find("backoffLimitPerIndex") != std::string::npos);
  CHECK(message.find("no end") == std::string::npos);
}

TEST_CASE("A reverted limit says what the policy does with the pods") {
  for (const bool evict : {false, true}) {
    JobStage stage;
    if (evict) stage.policy().job_retry->not_creditable = NotCreditable::Evict;
    stage.send_policy();
    stage.add_pod(0);
    stage.run_for(Seconds(62));
    stage.job().backoff_limit = 0;
    stage.upsert_job("train");
    CHECK(stage.run_for(minutes(1)).empty() != evict);
    const auto* said = stage.verdict("train", Reason::CreditReverted);
    REQUIRE(said != nullptr);
    CHECK((said->message.find("evicted all the same") != std::string::npos) == evict);
    CHECK((said->message.find("nothing of this Job is credited or evicted") != std::string::npos) != evict);
  }
}

TEST_CASE("Whoever takes a credit back again and again, or edits its record, has done one thing in an hour") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(Seconds(62));
  REQUIRE(stage.credits().credits.size() == 1);
  std::size_t told = 0;
  for (int i = 0; i < 100; ++i) {
    stage.job().backoff_limit = i % 2;
    auto credits = stage.credits();
    credits.credits.front().at = stage.now().wall;
    stage.job().meta.annotations = {{std::string(kRetryCreditsAnnotation), format_retry_credits(credits)}};
    stage.upsert_job("train");
    stage.run_for(Seconds(1));
  }
  for (const auto& event : stage.events()) told += event.reason == "CreditReverted" ? 1U : 0U;
  CHECK(told == 1);
}

TEST_CASE("Of a Job without pods nothing is said, whatever its annotation says was credited") {
  JobStage stage;
  stage.add_pod(0);
  stage.job().meta.annotations = {
      {std::string(kRetryCreditsAnnotation),
       format_retry_credits(
           {.limit = 9, .credits = {{.pod_uid = "x", .pod = "x", .device = "d", .at = {}, .limit = 9}}})}};
  stage.upsert_job("train");
  stage.settle();
  CHECK(stage.verdict("train", Reason::CreditReverted) != nullptr);
  stage.remove_pod("train-0");
  stage.settle();
  CHECK(stage.verdict("train", Reason::CreditReverted) == nullptr);
}

TEST_CASE("The loss of an index without a retry names maxFailedIndexes if it may end the whole Job") {
  auto stage = stage_for({Reason::IndexOutOfRetries, [](auto& job, auto&) {
                            job.backoff_limit_per_index = 0;
                            job.max_failed_indexes = 0;
                          }});
  stage.run_for(minutes(1));
  REQUIRE(stage.verdict("train-0", Reason::IndexOutOfRetries) != nullptr);
  CHECK(stage.verdict("train-0", Reason::IndexOutOfRetries)->message.find("may end the whole Job") !=
        std::string::npos);
}

TEST_CASE("A Job of a CronJob is ours to credit, and one that is ending is left alone") {
  auto cron = stage_for({Reason::Credited, [](auto& job, auto&) {
                           job.meta.controller = k8s::OwnerRef{"batch/v1", "CronJob", "nightly", "u"};
                         }});
  cron.run_for(minutes(1));
  CHECK(cron.job().backoff_limit == 1);
  auto ending = stage_for(
      {Reason::Credited, [](auto& job, auto&) { job.conditions = {{.type = "FailureTarget", .status = "True"}}; }});
  ending.run_for(minutes(1));
  CHECK(ending.patches().empty());
}

TEST_CASE("A limit lowered below our last credit is said, and neither credited again nor evicted until it is back") {
  JobStage stage;
  stage.add_pod(0);
  stage.run_for(Seconds(62));
  REQUIRE(stage.job().backoff_limit == 1);
  stage.job().backoff_limit = 0;  // kubectl apply of the old manifest
  stage.upsert_job("train");
  CHECK(stage.run_for(minutes(5), Seconds(5)).empty());
  CHECK(stage.patches().size() == 1);
  CHECK(stage.has_event("train", "CreditReverted"));
  CHECK(stage.verdict("train-0", Reason::NotCreditable)->message.find("took it back") != std::string::npos);
  stage.job().backoff_limit = 1;
  stage.upsert_job("train");
  CHECK(stage.run_for(Seconds(9)).empty());  // the Job controller may still see the lower one
  CHECK(stage.run_for(Seconds(1)) == Names{"train-0"});
}

TEST_CASE("Opted out Jobs are neither credited nor evicted") {
  auto stage = stage_for(
      {Reason::OptedOut, [](auto& job, auto&) { job.meta.annotations = {{"device-health.io/opt-out", "true"}}; }});
  CHECK(stage.run_for(minutes(3), Seconds(5)).empty());
  CHECK(stage.patches().empty());
  CHECK(stage.reasons("train-0") == "OptedOut");
}

}  // namespace dhc::test
