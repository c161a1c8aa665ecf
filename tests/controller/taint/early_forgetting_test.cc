// A driver that begins anew before the incident of its device is open: within `after`, while the brake is engaged,
// before the rule is made.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/cluster/world.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

/// Its device has just turned Unhealthy; the driver has run since before that.
Stage fresh_stage() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.settle();
  return stage;
}

}  // namespace

TEST_CASE("A driver that begins anew within `after` does not keep its device's incident from opening") {
  for (const bool start_first : {true, false}) {
    CAPTURE(start_first);
    auto stage = fresh_stage();
    const auto onset = stage.now().mono;
    stage.run_for(Seconds(20));
    const auto began = stage.now().wall;
    start_first ? put_driver(stage, began) : stage.report("train-1", Health::Healthy);
    stage.run_for(kDriverSettle - Millis(1), Millis(3333));
    start_first ? stage.report("train-1", Health::Healthy) : put_driver(stage, began);
    stage.settle();
    stage.advance(onset + minutes(1) - stage.now().mono - Millis(1));
    stage.settle();
    CHECK(deeds(stage).empty());
    CHECK(stage.reasons("train-1") == "WaitingForWindow");
    stage.advance(Millis(1));
    stage.settle();
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    stage.run_for(hours(1), minutes(1));
    CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    CHECK(stage.reasons("train-1").find("ReporterRestarted") != std::string::npos);
    CHECK(count_of_conditions(stage, true) == 1);
    CHECK(count_of_conditions(stage, false) == 0);
  }
}

TEST_CASE("What a pod's condition alone remembers is repaired by a driver that ran on, and by none that began anew") {
  auto stage = fresh_stage();
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(70));
  REQUIRE(count_of_conditions(stage, true) == 1);
  stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
  bool is_repaired = false;
  SUBCASE("it began anew") { put_driver(stage, stage.now().wall); }
  SUBCASE("it ran on") { is_repaired = true; }
  stage.report("train-1", Health::Healthy);
  stage.restart();
  stage.run_for(minutes(20), Seconds(10));
  CHECK(count_of_conditions(stage, false) == (is_repaired ? 1 : 0));
}

TEST_CASE("What a pod's condition alone remembers waits as long for a start that is told late, and opens nothing") {
  for (const bool began_anew : {true, false}) {
    CAPTURE(began_anew);
    auto stage = fresh_stage();
    stage.policy().taint.reset();
    stage.policy().evict.reset();
    stage.send_policy();
    stage.run_for(Seconds(70));
    REQUIRE(count_of_conditions(stage, true) == 1);
    stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
    stage.policy().match.health = {Health::Unhealthy, Health::Unknown};
    stage.policy().after = Seconds(0);
    const auto began = stage.now().wall;
    stage.report("train-1", Health::Healthy);
    stage.restart();
    stage.run_for(kDriverSettle - Millis(1), Millis(3333));
    CHECK(count_of_conditions(stage, false) == 0);
    CHECK(stage.controller().stats().incidents.empty());
    if (began_anew) put_driver(stage, began);
    stage.run_for(minutes(20), Seconds(10));
    CHECK(count_of_conditions(stage, false) == (began_anew ? 0 : 1));
  }
}

TEST_CASE("A driver that restarts within `after` is not believed where a clock is wrong") {
  for (const auto behind : {Millis(0), Millis(Seconds(30)), Millis(minutes(5))}) {
    for (const bool is_ours : {false, true}) {
      CAPTURE(behind.count());
      CAPTURE(is_ours);
      auto stage = fresh_stage();
      // Our own clock is ahead, which the server's answers tell, or the node's is behind.
      if (is_ours) stage.deliver(ServerClockSeen{.ahead = -behind});
      stage.run_for(Seconds(20));
      put_driver(stage, stage.now().wall - std::chrono::duration_cast<Seconds>(behind));
      stage.report("train-1", Health::Healthy);
      stage.run_for(minutes(30), Seconds(10));
      CHECK(deeds(stage) == "apply NoSchedule gpu-0");
    }
  }
}

TEST_CASE("A DRA driver whose start is told late, within `after`, has repaired nothing") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  const auto began = stage.now().wall;
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(23));
  put_driver(stage, began);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(count_of_conditions(stage, false) == 0);
}

TEST_CASE("What was bad before a long Unknown is not gone on with because its driver began anew meanwhile") {
  for (const bool too_long : {false, true}) {
    CAPTURE(too_long);
    auto stage = fresh_stage();
    stage.run_for(Seconds(1));
    stage.report("train-1", Health::Unknown);
    stage.settle();
    stage.advance(kLongestUnknown - (too_long ? Millis(0) : Millis(1)));
    put_driver(stage, stage.now().wall - Seconds(11));
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(10));
    CHECK(deeds(stage) == (too_long ? "" : "apply NoSchedule gpu-0"));
    CHECK((stage.controller().stats().devices_unknown == 0) == too_long);
  }
}

TEST_CASE("An incident that a restarted driver's Healthy has opened ends with its hold, and opens no other") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(23), minutes(5));
  CHECK(stage.rule() != nullptr);
  stage.run_for(hours(50), minutes(5));
  CHECK(stage.rule() == nullptr);
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, delete gpu-0");
  CHECK(count_of_conditions(stage, false) == 1);
}

TEST_CASE(
    "A driver that takes back within `after` what it has said itself opens no incident, also if it restarts later") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  stage.report("train-1", Health::Healthy);
  stage.run_for(kDriverSettle + Seconds(1));
  put_driver(stage, stage.now().wall);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
  CHECK(count_of_conditions(stage, true) == 0);
}

TEST_CASE("A driver that has called its device bad again within `after` may take that back") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(5));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(Seconds(5));
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(5));
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
}

TEST_CASE("A node that boots within `after` has reset its devices: no incident opens") {
  auto stage = fresh_stage();
  stage.run_for(Seconds(20));
  boot(stage, "boot-2");
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage).empty());
}

TEST_CASE("What was called bad under the brake, and called healthy by a driver that began anew, opens no incident") {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.whole_policy().own_namespace = "dhc";
  stage.limits().brake_at_least = 2;
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", kFourGpus);
  put_driver(stage, stage.now().wall - hours(1));
  for (const auto* name : {"0", "1", "2"}) {
    const auto pod = std::string("train-") + name;
    stage.claim(pod + "-gpu", {std::string("gpu-") + name}, pod);
    stage.pod({.name = pod, .owner = "Job/train", .health = Health::Unhealthy, .claim = pod + "-gpu"});
  }
  stage.run_for(minutes(3));
  REQUIRE(stage.controller().stats().brakes_engaged > 0);
  put_driver(stage, stage.now().wall);
  for (const auto* name : {"train-0", "train-1", "train-2"}) stage.report(name, Health::Healthy);
  stage.run_for(minutes(30), Seconds(10));
  CHECK(stage.controller().stats().brakes_engaged == 0);
  CHECK(stage.controller().stats().devices_healthy == 3);
  CHECK(deeds(stage).empty());
  SUBCASE("bad again after the brake's release: an incident as any other") {
    stage.report("train-1", Health::Unhealthy);
    stage.run_for(minutes(2));
    CHECK(deeds(stage).starts_with("apply NoSchedule gpu-1"));
  }
}

TEST_CASE("Devices that a restarted driver calls healthy within their incidents engage no brake, and hold none") {
  Stage stage;
  stage.policy().taint = TaintRules{};
  stage.policy().evict.reset();
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  stage.node("node-a", 0);
  std::vector<std::string> devices;
  for (int i = 0; i < 8; ++i) devices.push_back("gpu-" + std::to_string(i));
  stage.slice("node-a", devices);
  put_driver(stage, stage.now().wall - hours(1));
  for (int i = 0; i < 5; ++i) {
    const auto pod = "train-" + std::to_string(i);
    stage.claim(pod + "-gpu", {devices.at(static_cast<std::size_t>(i))}, pod);
    stage.pod({.name = pod, .claim = pod + "-gpu"});
  }
  for (const auto* pod : {"train-0", "train-1", "train-2"}) {
    stage.run_for(minutes(10), Seconds(10));
    stage.report(pod, Health::Unhealthy, "Xid 79");
  }
  stage.run_for(minutes(2));
  REQUIRE(stage.controller().stats().brakes_engaged == 0);
  stage.report("train-3", Health::Unhealthy, "Xid 79");
  stage.report("train-4", Health::Unhealthy, "Xid 79");
  stage.run_for(Seconds(30));
  REQUIRE(stage.controller().stats().brakes_engaged > 0);
  put_driver(stage, stage.now().wall);
  for (int i = 0; i < 5; ++i) stage.report("train-" + std::to_string(i), Health::Healthy);
  stage.run_for(minutes(1));
  CHECK(stage.controller().stats().brakes_engaged == 0);
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(stage.controller().stats().brakes_engaged == 0);
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, apply NoSchedule gpu-1, apply NoSchedule gpu-2");
}

TEST_CASE("A leader opens no incident of what was forgotten while it stood by and another led") {
  for (const auto away : {Seconds(10), Seconds(16 * 60)}) {
    CAPTURE(away.count());
    auto stage = fresh_stage();
    stage.run_for(Seconds(20));
    stage.deliver(Leading{.leads = false});
    put_driver(stage, stage.now().wall);
    stage.report("train-1", Health::Healthy);
    stage.run_for(away, Seconds(5));
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(5));
    CHECK((stage.rule() != nullptr) == (away == Seconds(10)));
  }
}

TEST_CASE("A standby that takes over weighs what a pod's condition alone remembers as a new process does") {
  const auto after = [](bool told_late, std::optional<Seconds> stood_by) {
    auto stage = fresh_stage();
    stage.policy().taint.reset();
    stage.policy().evict.reset();
    stage.send_policy();
    stage.run_for(Seconds(70));
    REQUIRE(count_of_conditions(stage, true) == 1);
    stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
    const auto began = stage.now().wall;
    if (!told_late) put_driver(stage, began);
    stage.report("train-1", Health::Healthy);
    stage.restart();
    if (stood_by) stage.deliver(Leading{.leads = false});
    stage.run_for(Seconds(15));
    if (told_late) put_driver(stage, began);
    if (stood_by) {
      stage.run_for(*stood_by);
      stage.deliver(Leading{.leads = true});
    }
    stage.run_for(minutes(20), Seconds(10));
    CHECK(count_of_conditions(stage, false) == 0);
    return stage.reasons("train-1");
  };
  for (const bool told_late : {false, true}) {
    const auto by_new_process = after(told_late, std::nullopt);
    CHECK_FALSE(by_new_process.empty());
    for (const auto stood_by : {Seconds(2), Seconds(20), Seconds(120)}) {
      CAPTURE(told_late);
      CAPTURE(stood_by.count());
      CHECK(after(told_late, stood_by) == by_new_process);
    }
  }
}

TEST_CASE("A standby that takes over believes a driver that ran on, of what a pod's condition alone remembers") {
  auto stage = fresh_stage();
  stage.policy().taint.reset();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(70));
  REQUIRE(count_of_conditions(stage, true) == 1);
  stage.remove(k8s::Kind::ConfigMap, "device-health-incidents");
  stage.report("train-1", Health::Healthy);
  stage.restart();
  stage.deliver(Leading{.leads = false});
  stage.run_for(Seconds(20));
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(20), Seconds(10));
  CHECK(count_of_conditions(stage, false) == 1);
}

TEST_CASE("A leader opens what was forgotten while it stood by only if that was still to open when it began to lead") {
  for (const auto late : {Millis(0), Millis(1)}) {
    CAPTURE(late.count());
    auto stage = fresh_stage();
    stage.policy().after = hours(1);
    stage.send_policy();
    stage.settle();
    const auto onset = stage.now().mono;
    stage.deliver(Leading{.leads = false});
    stage.run_for(minutes(1));
    put_driver(stage, stage.now().wall);
    stage.report("train-1", Health::Healthy);
    stage.run_for(minutes(20), Seconds(5));
    stage.advance(onset + hours(1) - stage.now().mono - Millis(1) + late);
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(5));
    CHECK(deeds(stage) == (late == Millis(0) ? "apply NoSchedule gpu-0" : ""));
    CHECK(stage.controller().stats().devices_healthy == (late == Millis(0) ? 0 : 1));
  }
}

TEST_CASE("What the brake has excused while another led engages no brake and opens no incident in the next term") {
  for (const bool one_ends : {false, true}) {
    CAPTURE(one_ends);
    Stage stage;
    stage.policy().taint = TaintRules{};
    stage.whole_policy().own_namespace = "dhc";
    stage.send_policy();
    stage.deliver(Leading{.leads = false});
    stage.node("node-a", 0);
    stage.slice("node-a", kFourGpus);
    put_driver(stage, stage.now().wall - hours(1));
    for (const auto* name : {"0", "1", "2"}) {
      const auto pod = std::string("train-") + name;
      stage.claim(pod + "-gpu", {std::string("gpu-") + name}, pod);
      stage.pod({.name = pod, .owner = "Job/train", .health = Health::Unhealthy, .claim = pod + "-gpu"});
    }
    stage.run_for(minutes(2));
    put_driver(stage, stage.now().wall);
    for (const auto* name : {"train-0", "train-1", "train-2"}) stage.report(name, Health::Healthy);
    stage.run_for(minutes(2));
    if (one_ends) drop_pod(stage, "train-2", "train-2-gpu");
    stage.run_for(minutes(2));
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(10));
    CHECK(deeds(stage).empty());
    CHECK(count_of_conditions(stage, true) == 0);
    CHECK_FALSE(stage.has_event("node-a", "BrakeEngaged"));
    CHECK(stage.controller().stats().brakes_engaged == 0);
  }
}

TEST_CASE("A driver's crash within `after` that takes the pod along keeps no incident from opening") {
  auto stage = fresh_stage();
  const auto onset = stage.now().mono;
  stage.run_for(Seconds(5));
  drop_pod(stage, "train-1", "train-gpu");
  put_driver(stage, stage.now().wall);
  stage.settle();
  stage.claim("next-gpu", {"gpu-0"}, "train-2");
  stage.pod({.name = "train-2", .owner = "Job/train", .claim = "next-gpu"});
  stage.settle();
  stage.advance(onset + minutes(1) - stage.now().mono - Millis(1));
  stage.settle();
  CHECK(deeds(stage).empty());
  stage.advance(Millis(1));
  stage.settle();
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.reasons("train-2").find("ReporterRestarted") != std::string::npos);
}

TEST_CASE("Only another boot than the one under which the device was called bad has reset it") {
  auto stage = fresh_stage();
  SUBCASE("data that went back and forward again show none") {
    stage.run_for(Seconds(20));
    boot(stage, "boot-0");
    stage.run_for(Seconds(2));
    boot(stage, "boot-1");
    stage.run_for(Seconds(3));
  }
  SUBCASE("one that is seen at once after the word came before it") {
    stage.run_for(Seconds(10));
    boot(stage, "boot-2");
    stage.run_for(Seconds(5));
  }
  SUBCASE("it is called bad again after the boot") {
    stage.run_for(Seconds(20));
    boot(stage, "boot-2");
    stage.report("train-1", Health::Unknown);
    stage.run_for(Seconds(2));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(5));
  }
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(5));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

TEST_CASE("A rule that was not made before its device's driver began anew is made then") {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.limits().paused = true;
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.run_for(minutes(2));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(2));
  REQUIRE(stage.rule() == nullptr);
  stage.limits().paused = false;
  stage.send_policy();
  stage.run_for(minutes(1));
  CHECK(stage.rule() != nullptr);
}

}  // namespace dhc::test
