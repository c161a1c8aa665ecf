// One card that a device plugin offers as several devices has one history.
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "domain/incidents/state_text.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

const std::string kCard = "GPU-8a56a4bc-c184-a047-2620-b5d9ad2a5b3d";

/// Two cards as two devices each, all held and well; the controller remembers.
Stage shared_cards() {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.node = true, .node_at_least_percent = 1};
  stage.policy().recover = {.hold = hours(1), .half_life = hours(7200), .quarantine_above = 1.5};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4);
  for (const auto* replica : {"0", "1"}) {
    stage.pod({.name = std::string("x-") + replica, .owner = "Job/x", .device = kCard + "::" + replica});
    stage.pod({.name = std::string("y-") + replica, .owner = "Job/y", .device = std::string("GPU-y::") + replica});
  }
  stage.run_for(Seconds(10));
  return stage;
}

void break_for_a_while(Stage& stage, const std::string& pod) {
  stage.report(pod, Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  stage.report(pod, Health::Healthy);
  stage.run_for(minutes(11), Seconds(10));
}

std::optional<DeviceRecord> record_of(const Stage& stage, const std::string& device) {
  const auto content = parse_state(stage.state_text());
  for (const auto& record : content.records) {
    if (record.key.device == device) return record;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("An incident of another replica is the card's next one, also for the process after us") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    auto stage = shared_cards();
    break_for_a_while(stage, "x-0");
    REQUIRE(record_of(stage, kCard + "::0"));
    CHECK(record_of(stage, kCard + "::0")->past.count == 1);
    if (restarts) stage.restart();
    stage.report("x-1", Health::Unhealthy, "Xid 48");
    stage.run_for(Seconds(70));
    REQUIRE(record_of(stage, kCard + "::1"));
    const auto second = *record_of(stage, kCard + "::1");
    CHECK(second.past.count == 2);
    CHECK(second.past.penalty > 1.9);
    CHECK(second.is_quarantined());
    // The other card has none of it.
    stage.report("y-1", Health::Unhealthy, "Xid 48");
    stage.run_for(Seconds(70));
    REQUIRE(record_of(stage, "GPU-y::1"));
    CHECK(record_of(stage, "GPU-y::1")->past.count == 1);
  }
}

TEST_CASE("Replicas that break together are one break of their card") {
  auto stage = shared_cards();
  stage.report("x-0", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(30));
  stage.report("x-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  for (const auto* replica : {"::0", "::1"}) {
    const auto record = record_of(stage, kCard + replica);
    REQUIRE(record);
    CHECK(record->is_open());
    CHECK(record->past.count == 1);
    CHECK(record->past.penalty == 1);
    CHECK(!record->is_quarantined());
  }
}

TEST_CASE("A shared card that flaps breaks anew each time, once for all its replicas") {
  auto stage = shared_cards();
  stage.policy().recover.quarantine_above = 1000;
  stage.send_policy();
  for (int count = 1; count <= 3; ++count) {
    for (const auto* pod : {"x-0", "x-1"}) stage.report(pod, Health::Unhealthy, "Xid 79");
    stage.run_for(minutes(3), Seconds(10));
    for (const auto* replica : {"::0", "::1"}) {
      const auto record = record_of(stage, kCard + replica);
      REQUIRE(record);
      CHECK(record->is_open());
      CHECK(record->past.count == count);
    }
    // Not for so long that the incident ends.
    for (const auto* pod : {"x-0", "x-1"}) stage.report(pod, Health::Healthy);
    stage.run_for(minutes(9), Seconds(10));
  }
}

TEST_CASE("A card whose hold has run out is on probation with all its replicas") {
  auto stage = shared_cards();
  stage.report("x-0", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(70));
  stage.remove_pod("x-0");
  stage.run_for(hours(2), minutes(1));
  REQUIRE(record_of(stage, kCard + "::0"));
  REQUIRE(record_of(stage, kCard + "::0")->incident.phase() == IncidentPhase::Probation);
  stage.report("x-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(10));
  const auto relapsed = record_of(stage, kCard + "::1");
  REQUIRE(relapsed);
  CHECK(relapsed->is_open());
  // It was given back bad, and has not broken again.
  CHECK(relapsed->past.count == 2);
  CHECK(relapsed->past.penalty == 1);
}

}  // namespace dhc::test
