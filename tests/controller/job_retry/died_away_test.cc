// Jobs' pods that died on a bad device while no controller looked.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "domain/incidents/ailing_watch.h"
#include "tests/controller/job_retry/job_stage.h"

namespace dhc::test {

using k8s::Health;
using k8s::PodPhase;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

struct AwayStage : JobStage {
  AwayStage() {
    whole_policy().own_namespace = "dhc";
    policy().after = minutes(50);  // what is credited here has died first
    send_policy();
    settle();
  }

  /// One pod on a plugin's device that is called bad, known to a controller for some seconds.
  void let_ail() {
    add_pod(0);
    job().backoff_limit = 3;
    upsert_job("train");
    run_for(Seconds(20));
  }

  /// The same on a DRA device, whose word is gone with the pod's end.
  void let_ail_on_dra() {
    slice("node-a", {"gpu-0", "gpu-1"});
    claim("train-gpu", {"gpu-0"}, "train-0");
    pod({.name = "train-0",
         .owner = "Job/train",
         .health = Health::Unhealthy,
         .message = "Xid 79",
         .claim = "train-gpu"});
    job().backoff_limit = 3;
    upsert_job("train");
    run_for(Seconds(20));
  }

  /// It fails while nobody looks, so long after the last look.
  void die_away(Millis after = Seconds(5), const std::string& name = "train-0") {
    advance(after);
    auto& pod = pod_named(name);
    pod.last_start = now().wall;
    if (pod.allocated.empty() || !pod.claims.empty()) pod.allocated.clear();
    end_pod(name, PodPhase::Failed);
  }

  [[nodiscard]] std::ptrdiff_t state_writes() const { return std::ranges::count(writes(), "state"); }

  [[nodiscard]] bool is_credited() {
    if (job().backoff_limit == 3) {
      CHECK(verdict("train", Reason::DiedOfDevice) == nullptr);
      CHECK(patches().empty());
      return false;
    }
    CHECK(job().backoff_limit == 4);
    CHECK(states() == "spent");
    CHECK(has_event("train", "DiedOfDevice"));
    const auto losses = parse_losses(*k8s::find(job().meta.annotations, kLossesAnnotation));
    CHECK((losses && losses->size() == 1 && losses->front().what == "DiedOfDevice"));
    return true;
  }
};

}  // namespace

TEST_CASE("A pod that died of its device between two controllers gets its Job the retry back, once") {
  for (const bool is_dra : {false, true}) {
    CAPTURE(is_dra);
    AwayStage stage;
    is_dra ? stage.let_ail_on_dra() : stage.let_ail();
    stage.die_away();
    if (is_dra) stage.remove(k8s::Kind::ResourceClaim, "train-gpu");
    stage.advance(minutes(1));
    stage.restart();
    stage.run_for(Seconds(10));
    CHECK(stage.is_credited());
    const auto writes = stage.writes().size();
    for (int again = 0; again < 3; ++again) {
      stage.restart();
      stage.run_for(minutes(1), Seconds(10));
    }
    CHECK(stage.job().backoff_limit == 4);
    CHECK(stage.verdict("train", Reason::DiedOfDevice) != nullptr);
    CHECK(stage.writes().size() == writes);
  }
}

TEST_CASE("A pod that runs when the next controller begins and dies under an Unknown has died of its device") {
  for (const bool recovers : {false, true}) {
    CAPTURE(recovers);
    AwayStage stage;
    stage.let_ail();
    stage.report("train-0", Health::Unknown);
    stage.restart();
    stage.run_for(Seconds(10));
    if (recovers) {
      stage.report("train-0", Health::Healthy);
      stage.run_for(minutes(3), Seconds(10));  // a plugin's Healthy is believed after two
      stage.report("train-0", Health::Unknown);
      stage.run_for(Seconds(10));
    }
    stage.end_pod("train-0", PodPhase::Failed);
    stage.run_for(Seconds(10));
    CHECK(stage.is_credited() == !recovers);
  }
}

TEST_CASE("A device that was repaired before its pod died is not blamed") {
  SUBCASE("by the last word on a plugin's pod") {
    AwayStage stage;
    stage.let_ail();
    stage.report("train-0", Health::Healthy);
    stage.die_away();
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK_FALSE(stage.is_credited());
  }
  SUBCASE("in the sight of the controller before") {
    AwayStage stage;
    stage.let_ail_on_dra();
    stage.report("train-0", Health::Healthy);
    stage.run_for(kAilingLinger + Seconds(10));
    stage.die_away();
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK_FALSE(stage.is_credited());
  }
}

TEST_CASE("What was seen of a pod counts for an hour, and not a millisecond longer") {
  for (const bool is_late : {false, true}) {
    CAPTURE(is_late);
    AwayStage stage;
    stage.add_pod(0);
    stage.job().backoff_limit = 3;
    stage.upsert_job("train");
    stage.settle();  // here it is written down
    stage.die_away(kEndingMemory - Millis(is_late ? 0 : 1));
    stage.restart();
    stage.settle();
    CHECK(stage.is_credited() == !is_late);
  }
}

TEST_CASE("A state of yesterday, or one from a clock that was ahead, blames no device") {
  for (const auto away : {hours(24), hours(-24)}) {
    AwayStage stage;
    stage.let_ail();
    const auto text = stage.state_text();
    REQUIRE(text.contains("ailingPods"));
    stage.advance(hours(48));
    stage.set_clock(away - hours(48));
    stage.put(state_map(text));
    stage.die_away();
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK_FALSE(stage.is_credited());
  }
}

TEST_CASE("A word about another Job's pod, or another tenant's, credits nobody") {
  for (const std::string part : {R"("job":"uid-train")", R"("namespace":"default")", R"("uid":"uid-train-0")"}) {
    CAPTURE(part);
    AwayStage stage;
    stage.let_ail();
    auto text = stage.state_text();
    const auto at = text.find(part);
    REQUIRE(at != std::string::npos);
    text.insert(at + part.size() - 1, "x");
    stage.put(state_map(text));
    stage.die_away();
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK_FALSE(stage.is_credited());
  }
}

TEST_CASE("A pod that somebody deleted, or that ended well, while nobody looked has not died of its device") {
  for (const bool is_deleted : {false, true}) {
    AwayStage stage;
    stage.let_ail();
    if (is_deleted) stage.pod_named("train-0").meta.deletion = stage.now().wall;
    stage.advance(Seconds(5));
    stage.end_pod("train-0", is_deleted ? PodPhase::Failed : PodPhase::Succeeded);
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK_FALSE(stage.is_credited());
  }
}

TEST_CASE("A standby that leads after the leader's end gives the retry back once, whatever it has seen itself") {
  for (const bool sees_all : {true, false}) {
    CAPTURE(sees_all);
    AwayStage stage;
    stage.let_ail();
    stage.restart();
    stage.deliver(Leading{.leads = false});
    if (sees_all) stage.turn();
    stage.die_away();
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.run_for(Seconds(10));
    CHECK(stage.is_credited());
    stage.deliver(Leading{.leads = false});
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(1), Seconds(10));
    CHECK(stage.job().backoff_limit == 4);
  }
}

TEST_CASE("A Job that failed for good while nobody looked is told what it died of, by the time of its pod's end") {
  for (const int minutes_between : {0, 2}) {
    CAPTURE(minutes_between);
    AwayStage stage;
    stage.let_ail();
    stage.die_away();
    stage.advance(minutes(minutes_between));
    stage.fail_job();
    stage.advance(minutes(20));
    stage.restart();
    stage.run_for(Seconds(10));
    CHECK((stage.verdict("train", Reason::JobDiedOfDevice) != nullptr) == (minutes_between == 0));
    CHECK(stage.job().backoff_limit == 3);
  }
}

TEST_CASE("What waits for the end of a pause is not forgotten by a restart") {
  AwayStage stage;
  stage.let_ail();
  stage.limits().paused = true;
  stage.send_policy();
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(10));
  CHECK(stage.job().backoff_limit == 3);
  stage.restart();
  stage.run_for(minutes(10), Seconds(10));
  CHECK(stage.job().backoff_limit == 3);
  stage.limits().paused = false;
  stage.restart();
  stage.run_for(Seconds(10));
  CHECK(stage.is_credited());
}

TEST_CASE("Under a policy that gives no retries back nothing is kept about a pod") {
  AwayStage stage;
  stage.policy().job_retry->credit = false;
  stage.send_policy();
  stage.let_ail();
  CHECK_FALSE(stage.state_text().contains("ailingPods"));
}

TEST_CASE("A device that flaps under a Job's pod does not write the state with each flap") {
  AwayStage stage;
  stage.let_ail_on_dra();
  const auto before = stage.state_writes();
  for (int flap = 0; flap < 150; ++flap) {
    stage.report("train-0", flap % 2 == 0 ? Health::Healthy : Health::Unhealthy);
    stage.run_for(Seconds(4));
  }
  CHECK(stage.state_writes() - before <= 2);
}

TEST_CASE("While nothing changes the word about a pod is renewed each half hour, and not written otherwise") {
  AwayStage stage;
  stage.policy().after = hours(10);
  stage.send_policy();
  stage.let_ail();
  const auto before = stage.state_writes();
  stage.run_for(minutes(29), Seconds(30));
  CHECK(stage.state_writes() == before);
  stage.run_for(minutes(150), Seconds(30));
  CHECK(stage.state_writes() >= before + 4);
  CHECK(stage.state_writes() <= before + 6);
  stage.die_away();
  stage.restart();
  stage.run_for(Seconds(10));
  CHECK(stage.is_credited());
}

TEST_CASE("A pod that is gone, and told, leaves the state") {
  AwayStage stage;
  stage.let_ail();
  stage.end_pod("train-0", PodPhase::Failed);
  stage.run_for(Seconds(10));
  CHECK(stage.is_credited());
  CHECK(stage.state_text().contains("ailingPods"));
  stage.remove_pod("train-0");
  stage.run_for(minutes(2), Seconds(10));
  CHECK_FALSE(stage.state_text().contains("ailingPods"));
}

}  // namespace dhc::test
