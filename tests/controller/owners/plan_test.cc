// When an owner is read whose kind is not watched, and what its word does to the pods.
#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "domain/cluster/owner_chain.h"
#include "domain/contract/names.h"
#include "domain/limits/owner_reads.h"
#include "tests/controller/job_retry/job_stage.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;
using State = OwnerSight::State;

namespace {

OwnerSight opted_out_owner() {
  OwnerSight sight{.state = State::Found};
  sight.meta.annotations = {{std::string(kOptOutAnnotation), "true"}};
  return sight;
}

/// A pod of a RayCluster on a bad device.
struct RayStage : Stage {
  explicit RayStage(Millis evict_after = {}) {
    policy().evict->after = evict_after;
    limits().brake_at_least = 100;
    send_policy();
    node("node-a", 8, 4);
    add_pod("ray-0", "gpu-0");
  }

  void add_pod(const std::string& name, const std::string& device, const std::string& cluster = "big",
               const std::string& ns = "default") {
    pod({.name = name, .owner = "RayCluster/" + cluster, .device = device, .health = Health::Unhealthy});
    auto& made = pod_named(name);
    made.meta.controller.edit().api_version = "ray.io/v1";
    made.meta.ns = ns;
    upsert_pod(name);
  }

  void make_namespace(const std::string& name) {
    k8s::Namespace made;
    made.meta.name = name;
    made.meta.uid = "uid-" + name;
    put(made);
  }

  /// The reads of one turn, whose other actions are answered well.
  std::vector<owners::ReadOwner> reads_unanswered() {
    std::vector<owners::ReadOwner> reads;
    for (const auto& action : turn()) {
      const auto* read = std::get_if<owners::ReadOwner>(&action);
      CHECK_FALSE(std::holds_alternative<eviction::EvictPod>(action));
      read == nullptr ? answer(action) : reads.push_back(*read);
    }
    return reads;
  }
};

}  // namespace

TEST_CASE("the owner of an affected pod is read once, and the pod goes when it has not opted out") {
  RayStage stage;
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
  REQUIRE(stage.reads().size() == 1);
  CHECK(stage.reads()[0].ns == "default");
  CHECK(stage.reads()[0].owner == k8s::OwnerRef{"ray.io/v1", "RayCluster", "big", "uid-big"});
}

TEST_CASE("a healthy pod's owner is not read") {
  RayStage stage;
  stage.report("ray-0", Health::Healthy);
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.reads().empty());
}

TEST_CASE("an owner that has opted out keeps its pods, and is asked again every five minutes") {
  RayStage stage;
  stage.tell_of_owner("big", {}, opted_out_owner());
  CHECK(stage.run_for(Millis(299'999), Seconds(10)).empty());
  CHECK(stage.reasons("ray-0") == "OptedOut");
  CHECK(stage.verdict("ray-0", Reason::OptedOut)->message ==
        "device-health.io/opt-out: \"true\" on its RayCluster big");
  CHECK(stage.reads().size() == 1);
  stage.tell_of_owner("big", {}, {.state = State::Found});
  CHECK(stage.run_for(Millis(1)) == Names{"ray-0"});
  CHECK(stage.reads().size() == 2);
}

TEST_CASE("the owners above the owner count as well, watched or not") {
  for (const bool cron : {true, false}) {
    RayStage stage;
    const k8s::OwnerRef above{"batch/v1", cron ? "CronJob" : "Workflow", "nightly", "uid-nightly"};
    if (cron) {
      stage.pod({.name = "ray-0", .owner = "Job/train", .device = "gpu-0", .health = Health::Unhealthy});
      stage.job_named("train").meta.controller = above;
      stage.upsert_job("train");
    } else {
      OwnerSight sight{.state = State::Found};
      sight.meta.controller = above;
      stage.tell_of_owner("big", {}, sight);
    }
    stage.tell_of_owner("nightly", {}, opted_out_owner());
    CHECK(stage.run_for(minutes(2), Seconds(5)).empty());
    CHECK(stage.reasons("ray-0") == "OptedOut");
    CHECK(stage.reads().size() == (cron ? 1 : 2));
  }
}

TEST_CASE("a Job's dead pod is credited once the owner above the Job is read, and not if that has opted out") {
  for (const bool opted_out : {false, true}) {
    JobStage stage;
    stage.policy().after = minutes(30);
    stage.send_policy();
    stage.add_pod(0);
    stage.job().backoff_limit = 3;
    stage.job().meta.controller = k8s::OwnerRef{"batch/v1", "CronJob", "nightly", "uid-nightly"};
    stage.upsert_job("train");
    if (opted_out) stage.tell_of_owner("nightly", {}, opted_out_owner());
    stage.run_for(Seconds(5));
    stage.end_pod("train-0", k8s::PodPhase::Failed);
    stage.run_for(Seconds(10));
    CHECK(stage.reads().size() == 1);
    CHECK(stage.job().backoff_limit == (opted_out ? 3 : 4));
  }
}

TEST_CASE("owners in a circle end the walk") {
  RayStage stage;
  OwnerSight sight{.state = State::Found};
  sight.meta.controller = stage.pod_named("ray-0").meta.controller;
  stage.tell_of_owner("big", {}, sight);
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
  CHECK(stage.reads().size() == 1);
}

TEST_CASE("a chain of owners without end costs eight reads, and holds nobody for ever") {
  RayStage stage;
  for (int i = 0; i < 20; ++i) {
    OwnerSight sight{.state = State::Found};
    const auto above = std::to_string(i);
    sight.meta.controller = k8s::OwnerRef{"forged.example.com/v1", "Link", above, "uid-" + above};
    stage.tell_of_owner(i == 0 ? "big" : std::to_string(i - 1), {}, sight);
  }
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
  CHECK(stage.reads().size() == kMostOwners);
}

TEST_CASE("an owner that was made anew under its name is another one, and is read") {
  RayStage stage(minutes(2));
  stage.tell_of_owner("big", {}, opted_out_owner());
  stage.run_for(Seconds(5));
  CHECK(stage.reasons("ray-0") == "OptedOut");
  stage.pod_named("ray-0").meta.controller.edit().uid = "uid-big-anew";
  stage.upsert_pod("ray-0");
  stage.tell_of_owner("big", {}, {.state = State::Found});
  CHECK(stage.run_for(minutes(4)) == Names{"ray-0"});
  CHECK(stage.reads().size() == 2);
}

TEST_CASE("an owner that is gone or of a kind that is not served has not opted out") {
  RayStage stage;
  stage.tell_of_owner("big", {}, {.state = State::Absent});
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
}

TEST_CASE("an owner that may not be read holds its pods with the rule that is missing, until it may") {
  RayStage stage;
  stage.tell_of_owner("big", fail(ErrorKind::Forbidden, "no"), {.state = State::Forbidden, .meta = {}, .why = "RULE"});
  CHECK(stage.run_for(minutes(30), Seconds(5)).empty());
  CHECK(stage.reasons("ray-0") == "OptOutUnknown");
  CHECK(stage.verdict("ray-0", Reason::OptOutUnknown)->message ==
        "RayCluster big may have opted out and could not be read: RULE");
  CHECK(stage.reads().size() >= 4);
  CHECK(stage.reads().size() <= 7);  // 1, 2, 4, 8, 10 minutes apart
  stage.tell_of_owner("big", {}, {.state = State::Found});
  CHECK(stage.run_for(minutes(11), Seconds(5)) == Names{"ray-0"});
}

TEST_CASE("an answer that never comes holds the pod, and the owner is asked for again after two minutes") {
  RayStage stage;
  CHECK(stage.reads_unanswered().size() == 1);
  stage.advance(OwnerReads::kUnanswered - Millis(1));
  CHECK(stage.reads_unanswered().empty());
  stage.advance(Millis(1));
  CHECK(stage.reads_unanswered().size() == 1);
  CHECK(stage.reasons("ray-0") == "OptOutUnknown");
}

TEST_CASE("an answer is as old as its question, however late it comes, and the second time it changes nothing") {
  RayStage stage;
  const auto reads = stage.reads_unanswered();
  REQUIRE(reads.size() == 1);
  stage.advance(kOwnerWordAge);
  stage.answer(reads[0]);
  stage.answer(reads[0]);
  // Read again before it goes.
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
  CHECK(stage.reads().size() == 1);
}

TEST_CASE("an older answer does not take the place of a younger one") {
  RayStage stage;
  const auto first = stage.reads_unanswered();
  stage.advance(OwnerReads::kUnanswered);
  const auto second = stage.reads_unanswered();
  REQUIRE(first.size() + second.size() == 2);
  stage.tell_of_owner("big", {}, opted_out_owner());
  stage.answer(second[0]);
  (void)stage.turn();
  stage.tell_of_owner("big", {}, {.state = State::Found});
  stage.answer(first[0]);
  CHECK(stage.run_for(Seconds(60)).empty());
  CHECK(stage.reasons("ray-0") == "OptedOut");
}

TEST_CASE("before an eviction an owner's word of five minutes is asked for again, and a younger one is not") {
  for (const bool old : {false, true}) {
    RayStage stage(minutes(4) - Millis(old ? 0 : 1));
    CHECK(stage.run_for(minutes(5) - Millis(1), minutes(5) - Millis(1)).size() == (old ? 0 : 1));
    REQUIRE(stage.reads().size() == 1);
    if (!old) continue;
    stage.tell_of_owner("big", {}, opted_out_owner());
    CHECK(stage.run_for(minutes(1)).empty());
    CHECK(stage.reads().size() == 2);
    CHECK(stage.reasons("ray-0") == "OptedOut");
  }
}

TEST_CASE("in observe mode a word that is old is not asked for again and again") {
  RayStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(50), Seconds(30));
  CHECK(stage.reasons("ray-0") == "WouldEvict");
  CHECK(stage.reads().size() == 1);
}

TEST_CASE("a new process reads anew") {
  RayStage stage(minutes(2));
  stage.run_for(Seconds(5));
  CHECK(stage.reads().size() == 1);
  stage.restart();
  stage.run_for(Seconds(5));
  CHECK(stage.reads().size() == 2);
}

TEST_CASE("a tenant's hundred owners do not keep another tenant's owner from being read") {
  RayStage stage;
  for (const char* ns : {"greedy", "other"}) stage.make_namespace(ns);
  stage.node("node-a", 300, 300);
  stage.run_for(Seconds(1));
  for (int i = 0; i < 100; ++i) {
    const auto number = std::to_string(i);
    stage.add_pod("g-" + number, "gpu-g" + number, "greedy-" + number, "greedy");
  }
  // Whatever becomes of the first read, an API that does not answer say: it holds up its own namespace alone.
  const auto first = stage.reads_unanswered();
  REQUIRE(first.size() == 1);
  CHECK(first[0].ns == "greedy");
  stage.add_pod("o-0", "gpu-o0", "others", "other");
  stage.advance(Seconds(1));
  const auto second = stage.reads_unanswered();
  REQUIRE(second.size() == 1);
  CHECK(second[0].ns == "other");
}

TEST_CASE("a read that was stopped changes nothing of what is known, and is asked for at once") {
  RayStage stage(minutes(2));
  stage.tell_of_owner("big", {}, opted_out_owner());
  stage.run_for(Seconds(1));
  stage.advance(kOwnerWordAge);
  const auto again = stage.reads_unanswered();
  REQUIRE(again.size() == 1);
  stage.deliver(Outcome{.action = again[0],
                        .status = fail(ErrorKind::Cancelled, "not sent"),
                        .sight = OwnerSight{.state = State::Failed, .meta = {}, .why = "not sent"}});
  CHECK(stage.reads_unanswered().size() == 1);
  CHECK(stage.reasons("ray-0") == "OptedOut");
}

TEST_CASE("of the minute's reads a tenant's many owners get what others leave, and each owner has its turn") {
  RayStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.make_namespace("greedy");
  stage.node("node-a", 300, 100);
  stage.run_for(Seconds(1));
  const auto before = stage.reads().size();
  for (int i = 0; i < 150; ++i) {
    const auto number = std::to_string(i);
    stage.add_pod("g-" + number, "gpu-g" + number, "greedy-" + number, "greedy");
  }
  stage.run_for(Seconds(60));
  const auto read = stage.reads().size() - before;
  CHECK(read > 100);
  CHECK(read <= 60 + 60 + 1);
  std::map<std::string, int> times;
  for (const auto& one : stage.reads()) ++times[one.owner.name];
  CHECK(std::ranges::all_of(times, [](const auto& entry) { return entry.second == 1; }));
  stage.make_namespace("other");
  stage.add_pod("o-0", "gpu-o0", "others", "other");
  stage.run_for(Seconds(2));
  CHECK(std::ranges::count(stage.reads(), "other", &owners::ReadOwner::ns) == 1);
}

TEST_CASE("what an old term asked for tells in the new one what it is, and no more") {
  RayStage stage;
  const auto old = stage.reads_unanswered();
  stage.deliver(Leading{.leads = false});
  (void)stage.turn();
  stage.advance(Seconds(1));
  stage.deliver(Leading{.leads = true});
  const auto anew = stage.reads_unanswered();
  REQUIRE(old.size() + anew.size() == 2);
  stage.advance(Seconds(30));
  stage.answer(old[0], fail(ErrorKind::Cancelled, "not sent"));
  CHECK(stage.reads_unanswered().empty());
  stage.answer(anew[0]);
  CHECK(stage.run_for(Seconds(60)) == Names{"ray-0"});
}

TEST_CASE("a reference with another tenant's UID says nothing about that tenant's owner") {
  RayStage stage;
  stage.limits().per_owner = 10;
  stage.send_policy();
  stage.tell_of_owner("big", {}, opted_out_owner());
  stage.make_namespace("forger");
  for (const char* name : {"forged-a", "forged-b"}) {
    stage.add_pod(name, std::string("gpu-") + name, "big", "forger");
    auto& forged = stage.pod_named(name);
    forged.meta.controller.edit().name = name;
    stage.upsert_pod(name);
    stage.tell_of_owner(name, {}, {.state = State::Absent});
  }
  CHECK(stage.run_for(minutes(2), Seconds(5)) == Names{"forged-a", "forged-b"});
  CHECK(stage.reasons("ray-0") == "OptedOut");
}

TEST_CASE("parts of a reference cannot be written so that two references are one key") {
  const k8s::OwnerRef a{"g/v1", "Kind", "name", "uid"};
  const k8s::OwnerRef b{"g/v1", "Kin", "dname", "uid"};
  CHECK(owner_key("ns", a) != owner_key("ns", b));
  CHECK(owner_key("ns", a) != owner_key("n", a));
  CHECK(owner_key("1:a", {"x", "k", "n", "u"}) != owner_key("1", {"ax", "k", "n", "u"}));
}

TEST_CASE("what is remembered of owners is bounded") {
  OwnerSights sights;
  const Now now{.mono = MonoTime(std::chrono::hours(2)), .wall = {}};
  for (std::size_t i = 0; i < kMostOwnerSights + 5; ++i) {
    (void)sights.note({}, "ns", {"g/v1", "K", std::to_string(i), "u"}, now.mono - Millis(i == 7 ? 100 : 0), now);
  }
  CHECK(sights.size() == kMostOwnerSights);
  CHECK(sights.find("ns", {"g/v1", "K", "7", "u"}) == nullptr);
  CHECK(sights.note({}, "other", {"g/v1", "K", "x", "u"}, now.mono + kOwnerSightKept,
                    {.mono = now.mono + kOwnerSightKept, .wall = {}}) == std::set<std::string>{"ns"});
  CHECK(sights.size() == 1);
}

}  // namespace dhc::test
