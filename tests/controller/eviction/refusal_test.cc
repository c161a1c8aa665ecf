// What the plan makes of evictions that were refused, or whose answer never came.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using eviction::EvictPod;
using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// `count` nodes, on each one bad device held by a pod of a ReplicaSet of its own; nothing brakes.
Stage bad_pods(int count, const Limits& limits) {
  Stage stage;
  stage.limits() = limits;
  stage.send_policy();
  for (int i = 0; i < count; ++i) {
    const auto node = fmt::format("node-{}", i);
    stage.node(node, 4, 3);
    stage.pod({.name = fmt::format("p-{}", i),
               .node = node,
               .owner = fmt::format("ReplicaSet/rs-{}", i),
               .device = "gpu-0",
               .health = Health::Unhealthy});
  }
  return stage;
}

/// Answers evictions of the pods named so with this error, all others well, and keeps whom it was asked for, and when.
struct Judge {
  Judge(Stage& stage, Names refused, ErrorKind kind) : stage_(stage), refused_(std::move(refused)), kind_(kind) {
    stage.answer_evictions([this](const EvictPod& evict) -> Status {
      asked.push_back(evict.name);
      at.push_back(stage_.now().mono);
      if (std::ranges::find(refused_, evict.name) == refused_.end()) return {};
      return fail(kind_, "the server's own sentence");
    });
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& name) const { return std::ranges::count(asked, name); }
  Names asked;
  std::vector<MonoTime> at;

 private:
  Stage& stage_;
  Names refused_;
  ErrorKind kind_;
};

const Limits kWide{
    .evictions_per_minute = 600, .max_in_flight = 100, .per_node = 9, .per_owner = 9, .brake_at_least = 99};

}  // namespace

TEST_CASE(
    "An eviction that was declined frees its slot at once and is asked for again after 30 s, to the millisecond") {
  auto limits = kWide;
  limits.max_in_flight = 1;
  auto stage = bad_pods(2, limits);
  Judge judge(stage, {"p-0"}, ErrorKind::Declined);
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  stage.settle();
  CHECK(judge.asked == Names{"p-0", "p-1"});
  CHECK(stage.reasons("p-0") == "Refused");
  CHECK(stage.verdict("p-0", Reason::Refused)->message == "Declined: the server's own sentence; attempt 1");
  CHECK(stage.has_event("p-0", "Refused"));
  stage.remove_pod("p-1");
  stage.advance(Seconds(30) - Millis(1));
  stage.settle();
  CHECK(judge.count("p-0") == 1);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(judge.count("p-0") == 2);
}

TEST_CASE("The pauses after a refusal grow to ten minutes, and a newer version of the pod does not shorten them") {
  auto stage = bad_pods(1, kWide);
  Judge judge(stage, {"p-0"}, ErrorKind::Declined);
  for (int step = 0; step < 60 * 60; ++step) {
    stage.run_for(Seconds(1));
    if (step % 10 == 0) stage.upsert_pod("p-0");
  }
  REQUIRE(judge.at.size() >= 7);
  for (std::size_t i = 1; i < judge.at.size(); ++i) {
    const auto pause = judge.at[i] - judge.at[i - 1];
    CHECK(pause == std::min<Millis>(Seconds(30) * (1 << (i - 1)), minutes(10)));
  }
}

TEST_CASE("A refusal is no loss of the owner, and costs no eviction of the minute") {
  auto limits = kWide;
  limits.evictions_per_minute = 1;
  auto stage = bad_pods(3, limits);
  Judge judge(stage, {"p-0", "p-1"}, ErrorKind::Declined);
  CHECK(stage.run_for(Seconds(100)) == Names{"p-2"});
  CHECK(judge.asked.size() >= 3);
}

TEST_CASE("A refused eviction that the server commits late is ours: it holds its slot and is a loss of the owner") {
  for (const bool is_ours : {true, false}) {
    CAPTURE(is_ours);
    auto limits = kWide;
    limits.max_in_flight = 1;
    auto stage = bad_pods(1, limits);
    Judge judge(stage, {"p-0"}, ErrorKind::Declined);
    stage.run_for(Seconds(60));
    REQUIRE(judge.count("p-0") == 1);
    stage.advance(Seconds(30) - Millis(is_ours ? 1 : 0));
    auto& pod = stage.pod_named("p-0");
    pod.meta.deletion = stage.now().wall + Seconds(30);
    pod.meta.deletion_grace_seconds = 30;
    pod.conditions.push_back({.type = "DisruptionTarget",
                              .status = "True",
                              .reason = "EvictionByEvictionAPI",
                              .message = {},
                              .last_transition = stage.now().wall});
    stage.upsert_pod("p-0");
    stage.turn();
    CHECK(stage.controller().stats().in_flight == (is_ours ? 1 : 0));
    stage.advance(Seconds(30));
    stage.remove_pod("p-0");
    stage.pod(
        {.name = "p-0b", .node = "node-0", .owner = "ReplicaSet/rs-0", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(minutes(2));
    CHECK((stage.reasons("p-0b") == "ReplacementOnSameDevice") == is_ours);
    CHECK(judge.count("p-0b") == (is_ours ? 0 : 1));
  }
}

TEST_CASE("What keeps failing goes behind what has not been tried") {
  auto limits = kWide;
  limits.max_in_flight = 1;
  auto stage = bad_pods(4, limits);
  Judge judge(stage, {"p-0", "p-1", "p-2", "p-3"}, ErrorKind::Declined);
  stage.run_for(minutes(2));
  REQUIRE(judge.asked.size() >= 8);
  CHECK(Names(judge.asked.begin(), judge.asked.begin() + 4) == Names{"p-0", "p-1", "p-2", "p-3"});
  stage.node("node-new", 4, 3);
  stage.pod(
      {.name = "new", .node = "node-new", .owner = "ReplicaSet/new", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(Seconds(61)) == Names{"new"});
}

TEST_CASE("One namespace's many do not stand before another's one") {
  auto limits = kWide;
  limits.max_in_flight = 1;
  auto stage = bad_pods(5, limits);
  k8s::Namespace small;
  small.meta.name = "small";
  small.meta.uid = "uid-small";
  stage.put(small);
  auto& last = stage.pod_named("p-4");
  last.meta.ns = "small";
  last.meta.controller.edit().kind = "RayCluster";
  stage.upsert_pod("p-4");
  Judge judge(stage, {"p-0", "p-1", "p-2", "p-3", "p-4"}, ErrorKind::Declined);
  stage.run_for(Seconds(61));
  INFO(fmt::format("{}", fmt::join(judge.asked, " ")));
  CHECK(judge.asked == Names{"p-0", "p-4", "p-1", "p-2", "p-3"});
}

TEST_CASE("An answer that never comes holds its slot once, for 30 s, and not again with every attempt") {
  for (const auto kind : {ErrorKind::Doubtful, ErrorKind::Unavailable, ErrorKind::TimedOut}) {
    CAPTURE(to_string(kind));
    auto limits = kWide;
    limits.max_in_flight = 1;
    auto stage = bad_pods(2, limits);
    Judge judge(stage, {"p-0"}, kind);
    stage.run_for(Seconds(59));
    stage.advance(Seconds(1));
    stage.settle();
    CHECK(judge.asked == Names{"p-0"});
    CHECK(stage.reasons("p-1") == "TooManyInFlight");
    stage.advance(Seconds(30) - Millis(1));
    stage.settle();
    CHECK(judge.asked == Names{"p-0"});
    stage.advance(Millis(1));
    stage.settle();
    // What has not been tried comes first, and the other holds no second slot.
    CHECK(judge.count("p-1") == 1);
    stage.remove_pod("p-1");
    stage.run_for(minutes(30));
    CHECK(judge.count("p-0") >= 4);
    CHECK(judge.count("p-0") <= 8);
    stage.node("node-new", 4, 3);
    stage.pod(
        {.name = "new", .node = "node-new", .owner = "ReplicaSet/new", .device = "gpu-0", .health = Health::Unhealthy});
    CHECK(stage.run_for(Seconds(61)) == Names{"new"});
  }
}

TEST_CASE("An eviction in doubt that the World shows as happened counts as one, also after a later refusal") {
  auto limits = kWide;
  limits.max_in_flight = 1;
  auto stage = bad_pods(2, limits);
  ErrorKind kind = ErrorKind::Doubtful;
  std::optional<EvictPod> tried;
  stage.answer_evictions([&](const EvictPod& evict) -> Status {
    if (evict.name != "p-0") return {};
    tried = evict;
    return fail(std::exchange(kind, ErrorKind::Declined), "no");
  });
  stage.run_for(Seconds(60));
  REQUIRE(tried.has_value());
  stage.remove_pod("p-1");
  stage.run_for(Seconds(31));
  auto& pod = stage.pod_named("p-0");
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.meta.deletion_grace_seconds = 30;
  pod.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "", stage.now().wall});
  stage.upsert_pod("p-0");
  stage.settle();
  CHECK(stage.reasons("p-0") == "Evicted");
}

TEST_CASE("A pod that the server no longer has is done: no slot, no token, no second request") {
  auto limits = kWide;
  limits.max_in_flight = 1;
  auto stage = bad_pods(2, limits);
  Judge judge(stage, {"p-0"}, ErrorKind::NotFound);
  stage.run_for(minutes(9));
  CHECK(judge.count("p-0") == 1);
  CHECK(judge.count("p-1") == 1);
  CHECK(stage.reasons("p-0") == "AlreadyTerminating");
}

TEST_CASE("Attempts have a bucket of their own, six times as large as that of evictions") {
  auto limits = kWide;
  limits.evictions_per_minute = 2;
  auto stage = bad_pods(40, limits);
  Names all;
  for (int i = 0; i < 40; ++i) all.push_back(fmt::format("p-{}", i));
  Judge judge(stage, all, ErrorKind::Blocked);
  stage.run_for(minutes(2));
  const auto from = stage.now().mono;
  stage.run_for(minutes(5));
  const auto in_five = std::ranges::count_if(judge.at, [&](MonoTime at) { return at > from; });
  CHECK(in_five <= 60);
  CHECK(in_five >= 58);
  // Every one has had its turn before any had many.
  for (const auto& name : all) CHECK(judge.count(name) <= 4);
  for (const auto& name : all) CHECK(judge.count(name) >= 1);
}

TEST_CASE("An eviction that a fresh read stopped is said, and the next attempt waits") {
  auto stage = bad_pods(1, kWide);
  Judge judge(stage, {"p-0"}, ErrorKind::Outdated);
  stage.run_for(Seconds(60));
  CHECK(judge.asked.size() == 1);
  CHECK(stage.reasons("p-0") == "SignalGone");
  stage.run_for(Seconds(29));
  CHECK(judge.asked.size() == 1);
  stage.run_for(Seconds(2));
  CHECK(judge.asked.size() == 2);
}

}  // namespace dhc::test
