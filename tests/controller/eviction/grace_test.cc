// How long an evicted pod counts as in flight, whatever grace its owner has given it, and what never terminates.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reconcilers/eviction/limits.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using eviction::EvictPod;
using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Two nodes with one bad device each, one slot in all; the first pod has this grace.
Stage two_pods(std::int64_t grace) {
  Stage stage;
  stage.limits() = {.evictions_per_minute = 600, .max_in_flight = 1, .brake_at_least = 99};
  stage.send_policy();
  for (int i = 0; i < 2; ++i) {
    const auto node = fmt::format("node-{}", i);
    stage.node(node, 4, 3);
    stage.pod({.name = fmt::format("p-{}", i),
               .node = node,
               .owner = fmt::format("ReplicaSet/rs-{}", i),
               .device = "gpu-0",
               .health = Health::Unhealthy});
  }
  stage.pod_named("p-0").grace_period_seconds = grace;
  stage.upsert_pod("p-0");
  return stage;
}

/// Until the moment at which the incidents open and the first pod goes.
Names open(Stage& stage) {
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  return stage.settle();
}

}  // namespace

TEST_CASE("A grace of a month counts for an hour and two minutes, to the millisecond, and is not called stuck") {
  auto stage = two_pods(30 * 86'400);
  CHECK(open(stage) == Names{"p-0"});
  stage.advance(hours(1) + minutes(2) - Millis(1));
  CHECK(stage.settle().empty());
  CHECK(stage.reasons("p-1") == "TooManyInFlight");
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-1"});
  CHECK(stage.reasons("p-0") == "Evicted");
  CHECK(stage.verdict("p-0", Reason::Evicted)->message.find("evictions.countedGrace") != std::string::npos);
}

TEST_CASE("How much of a grace counts is the limits' say") {
  auto stage = two_pods(30 * 86'400);
  stage.limits().counted_grace = minutes(5);
  stage.send_policy();
  CHECK(open(stage) == Names{"p-0"});
  stage.advance(minutes(7) - Millis(1));
  CHECK(stage.settle().empty());
  stage.advance(Millis(1));
  CHECK(stage.settle() == Names{"p-1"});
}

TEST_CASE("A grace that no clock can hold counts no longer, and no shorter") {
  for (const auto grace : {std::numeric_limits<std::int64_t>::max(), std::int64_t{9'223'372'036'854'775},
                           std::int64_t{9'223'372'036'854'776}, std::int64_t{315'569'520'001}}) {
    CAPTURE(grace);
    k8s::Pod pod;
    pod.grace_period_seconds = grace;
    const EvictionAttempt attempt = [] {
      EvictionAttempt made;
      made.at = MonoTime(hours(5));
      return made;
    }();
    CHECK(eviction::slot_until(attempt, pod, Limits{}) == MonoTime(hours(6) + minutes(2)));
    CHECK(eviction::gone_by(attempt, pod) > MonoTime(hours(24 * 365)));
    pod.meta.deletion_grace_seconds = -grace;
    CHECK(eviction::slot_until(attempt, pod, Limits{}) == MonoTime(hours(5) + minutes(2)));
  }
}

TEST_CASE("A process that starts anew finds the slot of a pod with a month's grace") {
  for (const auto grace : {std::int64_t{30 * 86'400}, std::int64_t{9'223'372'036'854'775}}) {
    CAPTURE(grace);
    auto stage = two_pods(30);
    CHECK(open(stage) == Names{"p-0"});
    auto& pod = stage.pod_named("p-0");
    pod.meta.deletion_grace_seconds = grace;
    stage.upsert_pod("p-0");
    stage.restart();
    stage.advance(minutes(30));
    CHECK(stage.settle().empty());
    CHECK(stage.reasons("p-1") == "TooManyInFlight");
    stage.advance(minutes(32));
    CHECK(stage.settle() == Names{"p-1"});
  }
}

TEST_CASE("An eviction that was accepted and never shows is said after grace and two minutes, and asked for again") {
  auto stage = two_pods(30);
  Names asked;
  stage.answer_evictions([&](const EvictPod& evict) -> Status {
    asked.push_back(evict.name);
    return {};
  });
  stage.show_evictions(false);
  open(stage);
  CHECK(asked == Names{"p-0"});
  stage.advance(Seconds(150) - Millis(1));
  stage.settle();
  CHECK(asked == Names{"p-0"});
  CHECK(stage.reasons("p-0") == "Evicted");
  CHECK(stage.reasons("p-1") == "TooManyInFlight");
  stage.advance(Millis(1));
  stage.settle();
  // What has not been tried goes first, and takes the slot.
  CHECK(asked == Names{"p-0", "p-1"});
  CHECK(stage.reasons("p-0") == "TooManyInFlight NotTerminating");
  CHECK(stage.has_event("p-0", "NotTerminating"));
  stage.remove_pod("p-1");
  stage.settle();
  CHECK(asked == Names{"p-0", "p-1", "p-0"});
  CHECK(stage.reasons("p-0") == "Evicted NotTerminating");
  CHECK(stage.verdict("p-0", Reason::NotTerminating)
            ->message.starts_with("the API server has accepted the eviction 1 time"));
}

TEST_CASE("An accepted eviction that shows late has its whole grace from then on, and no verdict of vanity") {
  auto stage = two_pods(30);
  stage.answer_evictions([](const EvictPod&) { return Status{}; });
  stage.show_evictions(false);
  open(stage);
  stage.advance(Seconds(140));
  stage.settle();
  auto& pod = stage.pod_named("p-0");
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "", stage.now().wall});
  stage.upsert_pod("p-0");
  stage.settle();
  CHECK(stage.reasons("p-0") == "Evicted");
  stage.advance(Seconds(150) - Millis(1));
  stage.settle();
  CHECK(stage.reasons("p-0") == "Evicted");
  CHECK(stage.reasons("p-1") == "TooManyInFlight");
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.reasons("p-0") == "StuckTerminating");
}

TEST_CASE("A fresh read that finds the accepted pod terminating leaves it to the watch to show it") {
  auto stage = two_pods(30);
  int asked = 0;
  stage.answer_evictions([&](const EvictPod& evict) -> Status {
    if (evict.name != "p-0" || ++asked == 1) return {};
    return fail(ErrorKind::Outdated, "a fresh read shows that it is terminating already");
  });
  stage.show_evictions(false);
  open(stage);
  stage.remove_pod("p-1");
  stage.run_for(Seconds(151));
  CHECK(asked == 2);
  CHECK(stage.verdict("p-0", Reason::SignalGone) != nullptr);
  auto& pod = stage.pod_named("p-0");
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "", stage.now().wall});
  stage.upsert_pod("p-0");
  stage.settle();
  CHECK(stage.reasons("p-0") == "Evicted");
}

}  // namespace dhc::test
