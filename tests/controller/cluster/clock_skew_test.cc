// Times that the API server wrote beside times of ours: each is compared by one clock. Without that each of these ends
// as it does where `is_known` is false.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/controller/job_retry/job_stage.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// How far the server's clock is ahead of ours, and whether the controller has been told.
struct Skew {
  Millis ahead;
  bool is_known;
};

const std::vector<Skew> kBehind = {{.ahead = -hours(1), .is_known = true}, {.ahead = -hours(1), .is_known = false}};
const std::vector<Skew> kAhead = {{.ahead = hours(1), .is_known = true}, {.ahead = hours(1), .is_known = false}};

void tell(Stage& stage, const Skew& skew) {
  if (skew.is_known) stage.deliver(ServerClockSeen{.ahead = skew.ahead});
}

/// The deletionTimestamp as the server writes it.
void shift_deletion(Stage& stage, const std::string& pod, Millis by) {
  auto& meta = stage.pod_named(pod).meta;
  meta.deletion = *meta.deletion + by;
  stage.upsert_pod(pod);
}

void put_made_at(Stage& stage, const PodSpec& spec, WallTime at) {
  stage.pod(spec).meta.creation = at;
  stage.upsert_pod(spec.name);
}

/// A brake that holds eight devices of one node, of which the first is evicted on trial.
Stage on_trial(const Skew& skew, bool shows_eviction) {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
  stage.send_policy();
  tell(stage, skew);
  stage.node("node-a", 8, 0);
  stage.node("node-b", 8);
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = fmt::format("p-{}", i),
               .owner = fmt::format("ReplicaSet/{}", i),
               .device = fmt::format("gpu-{}", i),
               .health = Health::Unhealthy});
  }
  stage.show_evictions(false);
  REQUIRE(stage.run_for(minutes(30) + Seconds(10), Seconds(10)) == Names{"p-0"});
  if (shows_eviction) {
    auto& meta = stage.pod_named("p-0").meta;
    meta.deletion_grace_seconds = 30;
    meta.deletion = stage.now().wall + skew.ahead + Seconds(30);
    stage.upsert_pod("p-0");
  }
  stage.settle();
  return stage;
}

std::string brake_says(const Stage& stage) {
  const auto* said = stage.verdict("node-a", Reason::BrakeEngaged);
  return said == nullptr ? std::string() : said->message;
}

bool has_passed(const Stage& stage) { return brake_says(stage).find("passed") != std::string::npos; }

/// The later pod of the trial's owner, as the server dates it.
void come_later(Stage& stage, const Skew& skew) {
  stage.remove_pod("p-0");
  put_made_at(stage, {.name = "p-0b", .node = "node-b", .owner = "ReplicaSet/0", .device = "other-0"},
              stage.now().wall + skew.ahead);
}

}  // namespace

TEST_CASE("A pod within its grace by the server's clock gives its bad device's share of the node back") {
  for (const auto& skew : kBehind) {
    CAPTURE(skew.is_known);
    Stage stage;
    tell(stage, skew);
    stage.node("node-a", 4, 2);
    stage.pod({.name = "web-1", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
    stage.pod({.name = "web-2", .owner = "ReplicaSet/y", .device = "gpu-1"});
    auto& going = stage.pod({.name = "going", .owner = "ReplicaSet/s", .device = "gpu-9", .health = Health::Unhealthy});
    going.meta.deletion = stage.now().wall + skew.ahead + minutes(5);
    going.meta.deletion_grace_seconds = 300;
    stage.upsert_pod("going");
    CHECK(stage.run_for(minutes(3)) == (skew.is_known ? Names{"web-1"} : Names{}));
  }
}

TEST_CASE("A pod that we evicted is believed to be leaving until two minutes after its end by the server's clock") {
  for (const auto& skew : kBehind) {
    CAPTURE(skew.is_known);
    Stage stage;
    tell(stage, skew);
    stage.limits().brake_at_least = 100;
    stage.policy().evict->bare_pods = true;
    stage.policy().evict->no_replacement_wait = Millis(0);
    stage.send_policy();
    stage.node("node-a", 3, 1);
    auto& two = stage.pod({.name = "a", .owner = {}, .device = "gpu-0", .health = Health::Unhealthy});
    two.requests = {{std::string(kGpu), 2}};
    two.allocated.front().devices.push_back({"gpu-1", Health::Healthy, ""});
    stage.upsert_pod("a");
    REQUIRE(stage.run_for(minutes(2)) == Names{"a"});
    shift_deletion(stage, "a", skew.ahead);
    stage.policy().evict->no_replacement_wait = minutes(10);
    stage.send_policy();
    stage.pod({.name = "b", .owner = "ReplicaSet/y", .device = "gpu-2", .health = Health::Unhealthy});
    CHECK(stage.run_for(Seconds(70)) == (skew.is_known ? Names{"b"} : Names{}));
  }
}

TEST_CASE("The replacement of a pod that went before its deletion was seen is known by the server's clock") {
  for (const auto& skew : kBehind) {
    CAPTURE(skew.is_known);
    Stage stage;
    tell(stage, skew);
    stage.limits() = {.per_owner = 10, .brake_at_least = 100};
    stage.send_policy();
    stage.node("node-a", 4, 2);
    stage.node("node-b", 2);
    stage.pod({.name = "a", .owner = "ReplicaSet/x", .device = "gpu-0", .health = Health::Unhealthy});
    stage.pod({.name = "b", .owner = "ReplicaSet/y", .device = "gpu-1"});
    stage.pod({.name = "c", .owner = "ReplicaSet/z", .device = "gpu-2"});
    stage.pod({.name = "d", .owner = "ReplicaSet/z", .device = "gpu-3"});
    stage.show_evictions(false);
    REQUIRE(stage.run_for(minutes(2)) == Names{"a"});
    stage.remove_pod("a");
    put_made_at(stage, {.name = "a-2", .node = "node-b", .owner = "ReplicaSet/x", .device = "gpu-9"},
                stage.now().wall + skew.ahead);
    stage.report("b", Health::Unhealthy);
    CHECK(stage.run_for(Seconds(70)) == (skew.is_known ? Names{"b"} : Names{}));
  }
}

TEST_CASE("A trial whose pod went before its deletion was seen passes by a later pod, by the server's clock") {
  for (const auto& skew : kBehind) {
    CAPTURE(skew.is_known);
    auto stage = on_trial(skew, false);
    come_later(stage, skew);
    stage.run_for(minutes(6), Seconds(10));
    CHECK(has_passed(stage) == skew.is_known);
  }
}

TEST_CASE("A trial goes on over a restart, however far the server's clock is from ours") {
  SUBCASE("behind: it is not void at once") {
    auto stage = on_trial(kBehind.front(), true);
    stage.restart();
    tell(stage, kBehind.front());
    stage.run_for(minutes(1), Seconds(10));
    CHECK(brake_says(stage).find("is tried") != std::string::npos);
    come_later(stage, kBehind.front());
    stage.run_for(minutes(6), Seconds(10));
    CHECK(has_passed(stage));
  }
  SUBCASE("ahead: a pod that was there before passes no trial") {
    auto stage = on_trial(kAhead.front(), true);
    put_made_at(stage, {.name = "sibling", .node = "node-b", .owner = "ReplicaSet/0", .device = "other-1"},
                stage.now().wall + kAhead.front().ahead - minutes(20));
    stage.remove_pod("p-0");
    stage.restart();
    tell(stage, kAhead.front());
    stage.run_for(minutes(6), Seconds(10));
    CHECK_FALSE(has_passed(stage));
  }
}

TEST_CASE("A Job that failed at once by a loss is said to have died of it, by the server's clock") {
  for (const auto& skew : kBehind) {
    CAPTURE(skew.is_known);
    JobStage stage;
    tell(stage, skew);
    stage.add_pod(0, Health::Unhealthy);
    stage.job().backoff_limit = 0;
    stage.upsert_job("train");
    stage.run_for(Seconds(20));
    stage.job().conditions = {{.type = "Failed",
                               .status = "True",
                               .reason = "BackoffLimitExceeded",
                               .message = {},
                               .last_transition = stage.now().wall + skew.ahead}};
    stage.upsert_job("train");
    stage.end_pod("train-0", k8s::PodPhase::Failed);
    stage.run_for(Seconds(2));
    CHECK((stage.verdict("train", Reason::JobDiedOfDevice) != nullptr) == skew.is_known);
  }
}

}  // namespace dhc::test
