// A driver, plugin, kubelet or node that begins anew within an incident: to the millisecond, in any order, and with the
// wrong clock.
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "domain/cluster/reporters.h"
#include "domain/cluster/world.h"
#include "domain/history/device_record.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Tainted, and still held by the pod, which is not evicted; the driver has run since before that.
Stage held_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  return stage;
}

std::string told(const Stage& stage) {
  const auto* verdict = stage.verdict("node-a", Reason::Tainted);
  return verdict == nullptr ? "" : verdict->message;
}

constexpr Millis kBelieved = minutes(10) + kDriverSettle;

}  // namespace

TEST_CASE("A driver that began a second before its device was called bad is believed, a millisecond later it is not") {
  for (const auto late : {Millis(0), Millis(1)}) {
    CAPTURE(late.count());
    auto stage = gpu_stage();
    stage.policy().evict.reset();
    stage.send_policy();
    put_driver(stage, stage.now().wall - Seconds(1) + late);
    stage.run_for(Seconds(70));
    stage.report("train-1", Health::Healthy);
    stage.settle();
    stage.advance(kDriverSettle);
    stage.settle();
    stage.advance(minutes(10) - Millis(1));
    stage.settle();
    CHECK(stage.rule() != nullptr);
    stage.advance(Millis(1));
    stage.settle();
    CHECK((stage.rule() == nullptr) == (late == Millis(0)));
  }
}

TEST_CASE(
    "What a driver says that began within the incident ends it no sooner than the hold, and not a millisecond later") {
  auto stage = held_stage();
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.settle();
  const auto began = stage.now().wall;
  stage.run_for(hours(24) - Seconds(1), minutes(10));
  CHECK(stage.reasons("train-1") == "NoEvictionConfigured");
  CHECK(told(stage).find("driver pod kube-system/gpu-driver-1 started at ") != std::string::npos);
  CHECK(told(stage).ends_with(
      "and has not reported it bad since: its Healthy is no evidence of a repair; held for 24 h (incident 1)"));
  stage.advance(std::chrono::duration_cast<Millis>(began + hours(24) - stage.now().wall) - Millis(1));
  stage.settle();
  CHECK(stage.rule() != nullptr);
  CHECK(count_of_conditions(stage, false) == 0);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) != nullptr);
  stage.run_for(Seconds(1), Millis(1));
  CHECK(count_of_conditions(stage, true) == 1);
  CHECK(count_of_conditions(stage, false) == 1);
}

TEST_CASE("Whether its Healthy or its start is seen first makes no difference") {
  for (const auto gap :
       {Millis(0), Millis(1), kDriverSettle - Millis(1), kDriverSettle + Millis(1), Millis(minutes(9))}) {
    for (const bool start_first : {true, false}) {
      if (start_first && gap >= kOwnWord) continue;  // the driver calls it bad itself by then
      CAPTURE(gap.count());
      CAPTURE(start_first);
      auto stage = held_stage();
      const auto began = stage.now().wall;
      start_first ? put_driver(stage, began) : stage.report("train-1", Health::Healthy);
      if (gap > Millis(0)) stage.settle();
      stage.run_for(gap, std::max(gap / 3, Millis(1)));
      start_first ? stage.report("train-1", Health::Healthy) : put_driver(stage, began);
      stage.run_for(hours(1), minutes(1));
      CHECK(stage.rule() != nullptr);
      CHECK(told(stage).find("is no evidence of a repair") != std::string::npos);
      const auto& last = stage.conditions().back();
      CHECK((last.wanted && last.wanted->status));
      if (gap < kDriverSettle || start_first) CHECK(count_of_conditions(stage, false) == 0);
      CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    }
  }
}

TEST_CASE("A DRA driver whose start is told 23 s after its Healthy has repaired nothing") {
  auto stage = held_stage();
  const auto began = stage.now().wall;
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(23));
  put_driver(stage, began);
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
  CHECK(count_of_conditions(stage, false) == 0);
}

TEST_CASE("A restart of ours forgets no restart of a driver, also when its pod has gone meanwhile") {
  auto stage = held_stage();
  put_driver(stage, stage.now().wall);
  stage.run_for(Seconds(10));
  stage.remove(k8s::Kind::Pod, "gpu-driver-1");
  stage.report("train-1", Health::Healthy);
  SUBCASE("we begin anew") {
    stage.settle();
    stage.restart();
  }
  SUBCASE("we begin anew, and see all at once") { stage.restart(); }
  SUBCASE("we do not") {}
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
  CHECK(told(stage).find("driver pod kube-system/gpu-driver-1 started at ") != std::string::npos);
  CHECK(count_of_conditions(stage, false) == 0);
}

TEST_CASE("A driver that began while we were away is found out by what its pod says") {
  auto stage = held_stage();
  stage.settle();
  stage.advance(minutes(1));
  put_driver(stage, stage.now().wall - Seconds(30));
  stage.report("train-1", Health::Healthy);
  stage.restart();
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A driver that began while we were away is found out on a node whose clock is behind, and may speak again") {
  auto stage = held_stage();
  put_driver(stage, stage.now().wall - minutes(5));
  stage.report("train-1", Health::Healthy);
  stage.restart();
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
  CHECK(told(stage).find("is no evidence of a repair") != std::string::npos);
  CHECK(count_of_conditions(stage, false) == 0);
  SUBCASE("we begin anew again") {
    stage.restart();
    stage.run_for(hours(1), minutes(1));
    CHECK(stage.rule() != nullptr);
    return;
  }
  SUBCASE("it calls the device bad itself") {
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(20));
  }
  SUBCASE("an Unhealthy stands that we have not seen begin") {
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.restart();
    stage.run_for(kOwnWord + Seconds(1));
  }
  stage.report("train-1", Health::Healthy);
  SUBCASE("and we begin anew") {
    stage.settle();
    stage.restart();
  }
  stage.run_for(kBelieved + Seconds(2), Seconds(1));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) == nullptr);
}

TEST_CASE("The start of a container is believed within a minute of our sight of it, whatever the node's clock says") {
  auto stage = held_stage();
  stage.run_for(minutes(2));
  SUBCASE("an hour behind: a start that we see cannot be so old") {
    put_driver(stage, stage.now().wall - minutes(50));
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(30), minutes(1));
    CHECK(stage.rule() != nullptr);
  }
  SUBCASE("an hour behind, and seen only in a list: it is news all the same, for another start was known") {
    put_driver(stage, stage.now().wall - minutes(50));
    stage.report("train-1", Health::Healthy);
    stage.relist();
    stage.run_for(minutes(30), minutes(1));
    CHECK(stage.rule() != nullptr);
  }
  SUBCASE("an hour ahead: once it has called the device bad itself it is believed") {
    put_driver(stage, stage.now().wall + hours(1));
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(2));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(minutes(2));
    stage.report("train-1", Health::Healthy);
    stage.run_for(kBelieved + Seconds(2), Seconds(1));
    CHECK(stage.rule() == nullptr);
    CHECK(stage.verdict("node-a", Reason::OnProbation) == nullptr);
  }
}

TEST_CASE(
    "A wall clock that is set back makes a restart no older than the word before it, and writes no state for ever") {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  stage.set_clock(hours(1));
  put_driver(stage, stage.now().wall - hours(2));
  stage.run_for(Seconds(70));
  stage.report("train-1", Health::Unknown);
  stage.run_for(Seconds(20));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(20));
  REQUIRE(stage.rule() != nullptr);
  stage.set_clock(Millis(0));
  stage.run_for(minutes(2));
  const auto text = stage.state_text();
  stage.run_for(minutes(2));
  CHECK(stage.state_text() == text);
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(30), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A wall clock that is set back behind a driver's start writes no state for ever") {
  auto stage = held_stage();
  stage.set_clock(hours(1));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(1));
  stage.set_clock(Millis(0));
  stage.run_for(minutes(5));
  const auto before = stage.writes().size();
  stage.run_for(minutes(5));
  CHECK(stage.writes().size() == before);
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("An operator's acknowledgement ends with the first Healthy, also when a restart follows at once") {
  auto stage = held_stage();
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(Seconds(20));
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(40));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Unknown);
  stage.run_for(Seconds(5));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(3));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("Only a DaemonSet's or the node's own pod with the driver's folders speaks for it") {
  const auto is_believed = [](const DriverPod& pod) {
    auto stage = held_stage();
    auto other = pod;
    other.name = "other";
    put_driver(stage, stage.now().wall, other);
    stage.report("train-1", Health::Healthy);
    stage.run_for(kBelieved + Seconds(2), Seconds(1));
    return stage.rule() == nullptr;
  };
  CHECK_FALSE(is_believed({}));
  CHECK_FALSE(is_believed({.owner = "Node"}));
  CHECK_FALSE(is_believed({.folders = {"plugins/gpu.example.com", "plugins_registry"}}));
  CHECK(is_believed({.owner = ""}));
  CHECK(is_believed({.owner = "ReplicaSet"}));
  CHECK(is_believed({.folders = {"device-plugins"}}));
  CHECK(is_believed({.folders = {"plugins", "plugins/csi.example.com", "plugins_registry"}}));
  CHECK(is_believed({.phase = k8s::PodPhase::Failed}));
}

TEST_CASE("A new boot of the node ends in probation after healthyFor, to the millisecond") {
  auto stage = held_stage();
  boot(stage, "boot-2");
  stage.report("train-1", Health::Healthy);
  stage.settle();
  stage.advance(minutes(10) - Millis(1));
  stage.settle();
  CHECK(stage.rule() != nullptr);
  CHECK(told(stage).ends_with("its node has rebooted: on probation if nobody reports it bad for 10 min"));
  CHECK(count_of_conditions(stage, false) == 0);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) != nullptr);
}

TEST_CASE("A boot is evidence also where nobody holds the device, and a driver that never was in a pod") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(30), minutes(1));
  boot(stage, "boot-2");
  stage.settle();
  stage.advance(minutes(10) - Millis(1));
  stage.settle();
  CHECK(stage.rule() != nullptr);
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::OnProbation) != nullptr);
}

TEST_CASE("A pod whose device is well again by a reboot alone is told of its probation") {
  auto stage = held_stage();
  const auto broke = stage.now().wall;
  boot(stage, "boot-2");
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), Seconds(10));
  REQUIRE(count_of_conditions(stage, false) == 1);
  const auto& said = stage.conditions().back().wanted->message;
  const auto at = said.find(", on probation until ");
  REQUIRE(at != std::string::npos);
  const auto until = parse_rfc3339(said.substr(at + std::string_view(", on probation until ").size()));
  REQUIRE(until);
  CHECK(*until > broke + hours(24));
  CHECK(*until < stage.now().wall + hours(24));
}

TEST_CASE("A node whose data went back to an earlier boot and forward again has not booted") {
  auto stage = gpu_stage();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(minutes(1));
  boot(stage, "boot-0");
  stage.run_for(minutes(5), Seconds(30));
  boot(stage, "boot-1");
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A device that is bad after the boot was not repaired by it, and then: Keep believes no boot") {
  auto stage = held_stage();
  SUBCASE("bad again") {
    boot(stage, "boot-2");
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(5));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(minutes(1));
    put_driver(stage, stage.now().wall);
    stage.report("train-1", Health::Healthy);
  }
  SUBCASE("bad all along") {
    boot(stage, "boot-2");
    put_driver(stage, stage.now().wall);
    stage.run_for(minutes(20), minutes(1));
    put_driver(stage, stage.now().wall);
    stage.report("train-1", Health::Healthy);
  }
  SUBCASE("Keep") {
    stage.policy().recover.probation = false;
    stage.send_policy();
    boot(stage, "boot-2");
    stage.report("train-1", Health::Healthy);
  }
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("A policy that acts on Unknown does not act on a Healthy that is not believed") {
  auto stage = held_stage();
  stage.policy().match.health = {Health::Unhealthy, Health::Unknown};
  stage.policy().evict = EvictRules{};
  stage.send_policy();
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.reasons("train-1").find("ReporterRestarted") != std::string::npos);
}

TEST_CASE("State of a version before this one counts a driver's start from when the incident opened") {
  auto stage = held_stage();
  auto text = stage.state_text();
  const auto at = text.find("\"calledBadAt\"");
  REQUIRE(at != std::string::npos);
  text.replace(at, std::string_view("\"calledBadAt\"").size(), "\"unknownKey_\"");
  stage.put(state_map(text));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.restart();
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

}  // namespace dhc::test
