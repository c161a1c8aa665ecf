// Since when a claim's condition counts (KEP-4817): its time is the driver's, and not believed further than ours.
#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// A pod whose driver speaks by claim conditions alone.
Stage network_card() {
  Stage stage;
  stage.policy().match.claim_conditions = {{"Ready", "False"}};
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-0"});
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unknown, .claim = "c"});
  stage.claim("c", {"gpu-0"}, "train-1");
  return stage;
}

void says(Stage& stage, const std::string& status, std::optional<WallTime> since) {
  k8s::ResourceClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = "c";
  claim.meta.uid = "uid-c";
  claim.meta.controller = k8s::OwnerRef{.api_version = "v1", .kind = "Pod", .name = "train-1", .uid = "uid-train-1"};
  claim.allocated = true;
  claim.results = {{.request = "gpu", .driver = std::string(kDriver), .pool = "node-a", .device = "gpu-0"}};
  claim.devices = {{.driver = std::string(kDriver),
                    .pool = "node-a",
                    .device = "gpu-0",
                    .conditions = {{.type = "Ready", .status = status, .last_transition = since}}}};
  stage.put(std::move(claim));
}

}  // namespace

TEST_CASE("A claim condition from long ago counts from our first sight of it") {
  auto stage = network_card();
  says(stage, "False", stage.now().wall - hours(24 * 365));
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.conditions().empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A report that joins a claim's condition, or comes and goes beside it, does not begin the wait anew") {
  for (const bool is_flapping : {false, true}) {
    CAPTURE(is_flapping);
    auto stage = network_card();
    says(stage, "False", std::nullopt);
    stage.run_for(Seconds(15));
    stage.report("train-1", Health::Unhealthy);
    stage.run_for(Seconds(20));
    if (is_flapping) stage.report("train-1", Health::Healthy);
    stage.run_for(Seconds(20));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    CHECK(stage.run_for(Seconds(4)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
}

TEST_CASE("A report that joins when the incident is open does not hold the eviction that it has begun to wait for") {
  auto stage = network_card();
  stage.policy().evict->after = minutes(1);
  stage.send_policy();
  says(stage, "False", std::nullopt);
  stage.run_for(Seconds(70));
  stage.report("train-1", Health::Unhealthy);
  CHECK(stage.run_for(Seconds(49)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A claim's condition that outlives a report counts from its own beginning") {
  auto stage = network_card();
  stage.report("train-1", Health::Unhealthy);
  stage.run_for(Seconds(30));
  says(stage, "False", std::nullopt);
  stage.run_for(Seconds(10));
  stage.report("train-1", Health::Healthy);
  CHECK(stage.run_for(Seconds(49)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A claim condition without a time counts from our first sight of it") {
  auto stage = network_card();
  says(stage, "False", std::nullopt);
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A time ahead of the clock counts as now, once, also when the clock passes it") {
  auto stage = network_card();
  stage.policy().evict->after = minutes(10);
  stage.send_policy();
  const auto began = stage.now().wall;
  says(stage, "False", stage.now().wall + minutes(5));
  stage.run_for(Seconds(59));
  CHECK(stage.conditions().empty());
  stage.run_for(minutes(9), Seconds(10));
  REQUIRE(stage.conditions().size() == 1);
  CHECK(stage.conditions().front().wanted->last_transition == began);
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A claim condition that was another in between begins anew, and the same one written again does not") {
  auto stage = network_card();
  const auto told = stage.now().wall - minutes(1);
  says(stage, "False", told);
  stage.run_for(Seconds(30));
  SUBCASE("the same") {
    says(stage, "False", told);
    CHECK(stage.run_for(Seconds(30)) == Names{"train-1"});
  }
  SUBCASE("True in between, which was seen") {
    says(stage, "True", stage.now().wall);
    stage.run_for(Seconds(1));
    says(stage, "False", told);
    CHECK(stage.run_for(Seconds(59)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
  SUBCASE("True in between, which only its time tells") {
    says(stage, "False", stage.now().wall - Seconds(10));
    CHECK(stage.run_for(Seconds(49)).empty());
    CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
  }
}

TEST_CASE("A condition that was another in between begins anew although ours on the pod still names it") {
  auto stage = network_card();
  stage.policy().evict->after = minutes(10);
  stage.send_policy();
  says(stage, "False", std::nullopt);
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 1);
  says(stage, "True", std::nullopt);
  says(stage, "False", std::nullopt);
  stage.run_for(Seconds(59));
  const auto* verdict = stage.verdict("train-1", Reason::WaitingForWindow);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->since == stage.now().wall - Seconds(59));
}

TEST_CASE("After a restart a time ahead of our first sight does not begin anew once the clock has passed it") {
  auto stage = network_card();
  stage.policy().evict.reset();
  stage.send_policy();
  const auto began = stage.now().wall;
  says(stage, "False", began + minutes(5));
  stage.run_for(minutes(2));
  stage.restart();
  for (const auto pause : {minutes(1), minutes(5)}) {
    stage.run_for(pause);
    const auto* verdict = stage.verdict("train-1", Reason::NoEvictionConfigured);
    REQUIRE(verdict != nullptr);
    CHECK(verdict->since == began);
  }
}

TEST_CASE("A restart neither ends nor begins anew what our condition remembers of a claim's") {
  auto stage = network_card();
  stage.policy().evict.reset();
  stage.send_policy();
  const auto began = stage.now().wall;
  says(stage, "False", began - hours(1));
  stage.run_for(minutes(2));
  const auto written = stage.conditions().size();
  stage.restart();
  stage.run_for(minutes(2));
  CHECK(stage.conditions().size() == written);
  CHECK(stage.verdict("train-1", Reason::NoEvictionConfigured)->since == began);
}

}  // namespace dhc::test
