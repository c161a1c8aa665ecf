#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "k8s-client/model/decoder.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/samples.h"

namespace {

using namespace dhc::k8s;
using RuleAction = JobFailureRule::Action;
using nlohmann::json;

Job read(const json& object) {
  const auto decoded = Decoder(Kind::Job, kKept).decode_object(object.dump());
  REQUIRE(decoded.has_value());
  return std::get<Job>(*decoded);
}

json sample() { return json::parse(dhc::test::full_sample(Kind::Job)); }

json condition(const char* type) { return {{"type", type}, {"status", "True"}, {"message", "long words"}}; }

}  // namespace

TEST_CASE("All that decides about a Job's retries is read") {
  const auto job = read(sample());
  CHECK(job.backoff_limit == 3);
  CHECK(job.backoff_limit_per_index == 1);
  CHECK(job.max_failed_indexes == 2);
  CHECK(job.completions == 8);
  CHECK(job.parallelism == 4);
  CHECK(job.indexed);
  CHECK(job.suspended);
  CHECK(job.manual_selector);
  CHECK(job.replaces_when_failed);
  CHECK(job.restarts_on_failure);
  CHECK(job.managed_by == "example.com/controller");
  REQUIRE(job.failure_rules.size() == 2);
  CHECK(job.failure_rules[0].on_exit_codes == JobFailureRule::ExitCodes{"main", true, {42}});
  CHECK(job.failure_rules[1].on_pod_conditions[0] == JobFailureRule::PodCondition{"DisruptionTarget", "True"});
  CHECK(job.failed == 1);
  CHECK(job.terminating == 4);
  CHECK(job.uncounted == 2);
  CHECK(job.failed_indexes == "1,3-5");
  CHECK(job.meta.controller->kind == "Job");
  CHECK(job.meta.has_annotations);
}

TEST_CASE("A Job that says nothing has the API's defaults") {
  const auto job = read({{"metadata", {{"namespace", "a"}, {"name", "b"}, {"uid", "c"}, {"resourceVersion", "1"}}}});
  CHECK(job.backoff_limit == 6);
  CHECK(job.parallelism == 1);
  CHECK(job.managed_by.empty());
  CHECK_FALSE(job.meta.has_annotations);
  CHECK_FALSE(is_ending(job));
}

TEST_CASE("Of a finished Job only identity, owner, our annotations and how it ended stay in memory") {
  for (const auto* type : {"Complete", "Failed"}) {
    auto object = sample();
    object["status"]["conditions"] = json::array({condition(type)});
    const auto job = read(object);
    CHECK(is_finished(job));
    Job small;
    small.meta = job.meta;
    small.conditions = job.conditions;
    small.managed_by = "example.com/controller";
    CHECK(job == small);
    CHECK(job.meta.labels.empty());
    CHECK(job.conditions[0].message.empty());
  }
}

TEST_CASE("An owner that is not the controller is seen beside one that is") {
  auto object = sample();
  const auto owner = [](const char* kind, bool controller) {
    return json({{"apiVersion", "x/v1"}, {"kind", kind}, {"name", "n"}, {"uid", "u"}, {"controller", controller}});
  };
  object["metadata"]["ownerReferences"] = json::array({owner("Workflow", false)});
  CHECK(read(object).meta.has_other_owner);
  CHECK(!read(object).meta.controller.has_value());
  object["metadata"]["ownerReferences"] = json::array({owner("Workflow", false), owner("CronJob", true)});
  CHECK(read(object).meta.has_other_owner);
  CHECK(read(object).meta.controller->kind == "CronJob");
  object["metadata"]["ownerReferences"] = json::array({owner("CronJob", true)});
  CHECK(!read(object).meta.has_other_owner);
}

TEST_CASE("A Job whose end is decided is ending before it has finished") {
  auto object = sample();
  object["status"]["conditions"] = json::array({condition("FailureTarget")});
  const auto job = read(object);
  CHECK(is_ending(job));
  CHECK_FALSE(is_finished(job));
  CHECK(failure_of(job)->type == "FailureTarget");
  CHECK(job.failure_rules.size() == 2);
}

TEST_CASE("Of a Job's labels only Kueue's and ours are kept") {
  auto object = sample();
  object["metadata"]["labels"] = {{"app", "x"}, {"kueue.x-k8s.io/queue-name", "q"}, {"device-health.io/a", "b"}};
  CHECK(read(object).meta.labels == StringMap{{"device-health.io/a", "b"}, {"kueue.x-k8s.io/queue-name", "q"}});
}

TEST_CASE("The first rule of a podFailurePolicy that matches decides") {
  const auto job = read(sample());
  const PodEnd evicted{.conditions = {{.type = "DisruptionTarget", .status = "True"}}, .exits = {}};
  CHECK(action_for(job, evicted) == RuleAction::Ignore);
  PodEnd both = evicted;
  both.exits = {{"main", 42}};
  CHECK(action_for(job, both) == RuleAction::FailJob);
  both.exits = {{"sidecar", 42}};
  CHECK(action_for(job, both) == RuleAction::Ignore);
  CHECK(action_for(job, PodEnd{.conditions = {{.type = "DisruptionTarget", .status = "False"}},
                               .exits = {{"main", 1}}}) == std::nullopt);
}

TEST_CASE("An operator NotIn matches every code that it does not list") {
  auto object = sample();
  object["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["operator"] = "NotIn";
  const auto job = read(object);
  CHECK(action_for(job, PodEnd{.conditions = {}, .exits = {{"main", 1}}}) == RuleAction::FailJob);
  CHECK(action_for(job, PodEnd{.conditions = {}, .exits = {{"main", 42}}}) == std::nullopt);
  CHECK(action_for(job, PodEnd{}) == std::nullopt);
}
