// Brakes that cover only the devices of which a driver says the same, or that one workload holds.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

/// Twenty nodes of four devices, each held by a pod; those on the first devices of the first ten nodes are of one
/// ReplicaSet.
struct WideStage : Stage {
  WideStage() {
    limits() = {.evictions_per_minute = 6000, .max_in_flight = 100, .per_node = 100, .per_owner = 100};
    limits().suspect_after = 0;
    limits().brake_trial_after = hours(720);
    policy().evict->no_replacement_wait = Seconds(0);  // every device is held
    whole_policy().own_namespace = "dhc";
    for (int n = 0; n < 20; ++n) {
      node(fmt::format("node-{}", n), 4);
      for (int i = 0; i < 4; ++i) put_pod(n, i, "p");
    }
  }

  static std::string name_of(int n, int i, std::string_view prefix = "p") {
    return fmt::format("{}-{}-{}", prefix, n, i);
  }

  void put_pod(int n, int i, std::string_view prefix) {
    const auto name = name_of(n, i, prefix);
    pod({.name = name,
         .node = fmt::format("node-{}", n),
         .owner = i == 0 && n < 10 ? "ReplicaSet/wide" : "ReplicaSet/of-" + name,
         .device = fmt::format("gpu-{}", i)});
  }

  void break_one(int n, int i, const std::string& words = "critical XID 79 on GPU-1") {
    report(name_of(n, i), Health::Unhealthy, words);
  }

  [[nodiscard]] const Verdict* brake_with(std::string_view part) const {
    for (const auto& verdict : verdicts()) {
      if (verdict.reason == Reason::BrakeEngaged && verdict.message.contains(part)) return &verdict;
    }
    return nullptr;
  }
};

struct OwnerStage : WideStage {
  OwnerStage() {
    limits().brake_by_owner = {.percent = 30, .at_least = 3};
    send_policy();
    settle();
  }
};

struct WordsStage : WideStage {
  WordsStage() {
    limits().brake_by_message.at_least = 5;
    send_policy();
    settle();
  }
};

constexpr std::string_view kWide = "devices of example.com/gpu that ReplicaSet default/wide holds are bad";
constexpr std::string_view kWords =
    "devices of example.com/gpu in the cluster are bad in the same words, \"critical XID # on GPU-#\"";

}  // namespace

TEST_CASE("A narrow brake that is switched on takes faults of old for what they are") {
  WideStage stage;
  stage.send_policy();
  for (int n = 10; n < 16; ++n) {
    const auto name = WideStage::name_of(n, 1);
    stage.pod_named(name).meta.annotations.emplace_back(std::string(kOptOutAnnotation), "true");
    stage.upsert_pod(name);
    stage.break_one(n, 1);
  }
  stage.run_for(hours(2), minutes(1));
  REQUIRE(stage.reasons(WideStage::name_of(10, 1)) == "OptedOut");
  stage.limits().brake_by_message.at_least = 5;
  stage.limits().brake_by_owner = {.percent = 30, .at_least = 1};
  stage.send_policy();
  stage.run_for(minutes(3));
  CHECK(stage.brake_with("in the same words") == nullptr);
  CHECK(stage.brake_with("holds are bad") == nullptr);
}

TEST_CASE("With byOwner a workload loses nothing while more than its share is bad, and others lose theirs") {
  for (const int bad : {3, 4}) {
    CAPTURE(bad);
    OwnerStage stage;
    for (int n = 0; n < bad; ++n) stage.break_one(n, 0);
    stage.break_one(15, 2);
    const auto gone = stage.run_for(minutes(3));
    // Three of ten are no more than 30 percent.
    if (bad == 3) {
      CHECK(gone.size() == 4);
      CHECK(stage.brake_with("wide") == nullptr);
      continue;
    }
    CHECK(gone == Names{"p-15-2"});
    const auto* brake = stage.brake_with("wide");
    REQUIRE(brake != nullptr);
    CHECK(brake->subject.kind == "ReplicaSet");
    CHECK(brake->subject.name == "wide");
    CHECK(brake->message.starts_with(fmt::format("4 of 10 {}: ", kWide)));
    CHECK(stage.has_event("wide", "BrakeEngaged"));
    const auto* held = stage.verdict("p-0-0", Reason::Braked);
    REQUIRE(held != nullptr);
    CHECK(held->message.starts_with(fmt::format("4 of 10 {}: suspect what the workload runs; the brake is ", kWide)));
  }
}

TEST_CASE("With byMessage a driver that says something else of all of them lets none of them go") {
  for (const std::string words : {"GPU is lost", ""}) {
    CAPTURE(words);
    WordsStage stage;
    for (int n = 0; n < 6; ++n) stage.break_one(n, 1);
    CHECK(stage.run_for(minutes(12), Seconds(10)).empty());
    REQUIRE(stage.brake_with("in the same words") != nullptr);
    for (int n = 0; n < 6; ++n) stage.break_one(n, 1, words);
    CHECK(stage.run_for(minutes(12), Seconds(10)).empty());
    CHECK(stage.brake_with("in the same words") != nullptr);
  }
}

TEST_CASE("A brake of a workload is off by default, and ends where it is switched off") {
  WideStage off;
  off.send_policy();
  off.settle();
  for (int n = 0; n < 4; ++n) off.break_one(n, 0);
  CHECK(off.run_for(minutes(3)).size() == 4);
  OwnerStage on;
  for (int n = 0; n < 4; ++n) on.break_one(n, 0);
  CHECK(on.run_for(minutes(3)).empty());
  on.limits().brake_by_owner.at_least = 0;
  on.send_policy();
  CHECK(on.run_for(minutes(1)).size() == 4);
}

TEST_CASE("What breaks under a workload whose brake is engaged is an incident all the same") {
  OwnerStage stage;
  stage.limits().suspect_after = 3;
  stage.send_policy();
  for (int n = 0; n < 5; ++n) stage.break_one(n, 0);
  CHECK(stage.run_for(minutes(3)).empty());
  CHECK(stage.brake_with(kWide) != nullptr);
  // Each of the five that broke, where it holds an eighth of all: that speaks against the workload.
  CHECK(stage.verdict("p-0-0", Reason::WorkloadSuspected) != nullptr);
}

TEST_CASE("The devices that broke under pods which are gone still count for their workload, over a restart") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    OwnerStage stage;
    for (int n = 0; n < 5; ++n) {
      stage.break_one(n, 0);
      stage.node(fmt::format("node-{}", n), 4, 3);
    }
    CHECK(stage.run_for(minutes(3)).empty());
    for (int n = 0; n < 3; ++n) stage.remove_pod(WideStage::name_of(n, 0));
    CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
    if (restarts) stage.restart();
    CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
    const auto* brake = stage.brake_with(kWide);
    REQUIRE(brake != nullptr);
    CHECK(brake->message.starts_with("5 of 10 devices"));
    // Two that are well again: three of ten are left, and half a minute later the brake is off.
    for (int n = 3; n < 5; ++n) {
      stage.report(WideStage::name_of(n, 0), Health::Healthy);
      stage.node(fmt::format("node-{}", n), 4);
    }
    stage.run_for(Seconds(29));
    CHECK(stage.brake_with(kWide) != nullptr);
    stage.run_for(minutes(1));
    CHECK(stage.brake_with(kWide) == nullptr);
  }
}

TEST_CASE("A workload's brake is released by its owner's word, and by the cluster's release") {
  for (const bool by_owner : {true, false}) {
    CAPTURE(by_owner);
    OwnerStage stage;
    for (int n = 0; n < 4; ++n) stage.break_one(n, 0);
    CHECK(stage.run_for(minutes(3)).empty());
    const auto now = format_rfc3339(stage.now().wall);
    stage.advance(Seconds(1));
    if (by_owner) {
      k8s::Owner owner;
      owner.kind = k8s::Kind::ReplicaSet;
      owner.meta.ns = "default";
      owner.meta.name = "wide";
      owner.meta.uid = "uid-wide";
      owner.meta.annotations = {{std::string(kAcknowledgeAnnotation), now}};
      stage.put(owner);
    } else {
      stage.whole_policy().brake_release = now;
      stage.send_policy();
    }
    CHECK(stage.run_for(minutes(1)).size() == 4);
    CHECK(stage.brake_with(kWide) == nullptr);
  }
}

TEST_CASE("With byMessage a text stops what it is said of, on whatever nodes, and no other") {
  for (const int bad : {4, 6}) {
    CAPTURE(bad);
    WordsStage stage;
    for (int n = 0; n < bad; ++n) stage.break_one(n, 1, fmt::format("critical XID {} on GPU-{}", 70 + n, n));
    stage.break_one(15, 2, "GPU is lost");
    const auto gone = stage.run_for(minutes(3));
    if (bad == 4) {
      CHECK(gone.size() == 5);
      CHECK(stage.brake_with("in the same words") == nullptr);
      continue;
    }
    CHECK(gone == Names{"p-15-2"});
    const auto* brake = stage.brake_with(kWords);
    REQUIRE(brake != nullptr);
    CHECK(brake->subject.kind == "Brake");
    CHECK(brake->message.starts_with("6 of 80 devices"));
    const auto* held = stage.verdict("p-0-1", Reason::Braked);
    REQUIRE(held != nullptr);
    CHECK(held->message.contains(kWords));
    CHECK(held->message.contains("suspect a reporting fault"));
    // Another text of the same driver says something else of the device: then it is that one's.
    stage.break_one(0, 1, "GPU is lost");
    CHECK(stage.run_for(minutes(3)) == Names{"p-0-1"});
  }
}

TEST_CASE("A text's brake goes as it came, and a restart does not release it") {
  WordsStage stage;
  for (int n = 0; n < 6; ++n) stage.break_one(n, 1);
  CHECK(stage.run_for(minutes(3)).empty());
  stage.restart();
  CHECK(stage.run_for(minutes(30), Seconds(10)).empty());
  REQUIRE(stage.brake_with(kWords) != nullptr);
  stage.report("p-0-1", Health::Healthy);
  CHECK(stage.run_for(minutes(1)).empty());
  CHECK(stage.brake_with(kWords) != nullptr);
  stage.report("p-1-1", Health::Healthy);
  CHECK(stage.run_for(Seconds(29)).empty());
  CHECK(stage.run_for(minutes(2)).size() == 4);
  CHECK(stage.brake_with(kWords) == nullptr);
}

TEST_CASE("A driver that says nothing has no brake of its words") {
  WordsStage stage;
  for (int n = 0; n < 6; ++n) stage.break_one(n, 1, "");
  CHECK(stage.run_for(minutes(3)).size() == 6);
}

TEST_CASE("A narrow brake that is due tries one pod at a time, as any other") {
  OwnerStage stage;
  stage.limits().brake_trial_after = minutes(30);
  stage.send_policy();
  stage.node("node-free", 4);
  for (int n = 0; n < 4; ++n) stage.break_one(n, 0);
  CHECK(stage.run_for(minutes(29), Seconds(10)).empty());
  CHECK(stage.run_for(minutes(2), Seconds(10)).size() == 1);
  const auto* brake = stage.brake_with(kWide);
  REQUIRE(brake != nullptr);
  CHECK(brake->message.contains("is tried"));
  CHECK(stage.run_for(minutes(20), Seconds(10)).empty());
}

}  // namespace dhc::test
