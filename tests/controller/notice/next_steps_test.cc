#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/controller/taint/gpu_stage.h"

using namespace dhc;
using k8s::Health;
using std::chrono::minutes;

namespace {

constexpr std::string_view kXid79 = "XID 79: GPU has fallen off the bus";

/// Two pods of ReplicaSet web; the device of web-1 is bad from minute 5 on, and nothing else has happened.
test::Stage bad_device() {
  test::Stage stage;
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.pod({.name = "web-2", .device = "gpu-1"});
  stage.policy().evict->after = minutes(5);
  stage.send_policy();
  stage.run_for(minutes(5));
  stage.report("web-1", Health::Unhealthy, std::string(kXid79));
  stage.node("node-a", 4, 3);
  return stage;
}

std::vector<std::string> notes(const test::Stage& stage, const std::string& subject, std::string_view reason) {
  std::vector<std::string> found;
  for (const auto& event : stage.events()) {
    if (event.regarding.name == subject && event.reason == reason) found.push_back(event.note);
  }
  return found;
}

void opt_out(test::Stage& stage, bool is_out) {
  auto& annotations = stage.pod_named("web-1").meta.annotations;
  annotations = is_out ? k8s::StringMap{{"device-health.io/opt-out", "true"}} : k8s::StringMap{};
  stage.upsert_pod("web-1");
}

const std::string kUnhealthy = "node-a/example.com/gpu/gpu-0 unhealthy since 2026-11-20T12:05:00Z (policy p";

}  // namespace

TEST_CASE("The first Event on a pod says what comes next, at which time, and how to keep the pod") {
  auto stage = bad_device();
  stage.run_for(minutes(2));
  const auto said = notes(stage, "web-1", "DeviceUnhealthy");
  REQUIRE(said.size() == 1);
  const auto message = kUnhealthy + "): " + std::string(kXid79) + "; next: eviction, due at 2026-11-20T12:11:00Z";
  CHECK(stage.conditions().back().wanted->message == message);
  CHECK(said.front() ==
        message + "; to keep the pod: kubectl -n default annotate pod web-1 device-health.io/opt-out=true");
}

TEST_CASE("A pod on a DRA device that nobody taints is not promised an eviction that does not come") {
  auto stage = test::gpu_stage();
  stage.policy().taint.reset();
  stage.send_policy();
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.verdict("train-1", Reason::DeviceStillSchedulable) != nullptr);
  CHECK(stage.conditions().back().wanted->message.find("next: no eviction (DeviceStillSchedulable): ") !=
        std::string::npos);
  // Once it is tainted the eviction comes.
  publish(stage,
          {{.name = "gpu-0", .taints = {{.key = "gpu.example.com/xid", .value = "79", .effect = "NoSchedule"}}}});
  stage.run_for(minutes(5), Seconds(10));
  CHECK(deeds(stage).find("evict train-1") != std::string::npos);
}

TEST_CASE("Condition and Event say the same of a recovery") {
  auto stage = bad_device();
  stage.run_for(minutes(2));
  stage.report("web-1", Health::Healthy);
  stage.node("node-a", 4, 4);
  stage.run_for(minutes(2));
  REQUIRE(notes(stage, "web-1", "Recovered").size() == 1);
  REQUIRE(stage.conditions().size() > 1);
  CHECK(stage.conditions().back().wanted->message == notes(stage, "web-1", "Recovered").front());
}

TEST_CASE("Driver's words of a kilobyte leave room for what comes next") {
  auto stage = bad_device();
  stage.report("web-1", Health::Unhealthy, std::string(1024, 'x'));
  stage.run_for(minutes(2));
  REQUIRE(notes(stage, "web-1", "DeviceUnhealthy").size() == 1);
  CHECK(notes(stage, "web-1", "DeviceUnhealthy").front().size() < 1024);
}

TEST_CASE("An observing policy's first Event promises no eviction, and names no way to stop one") {
  auto stage = bad_device();
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_for(minutes(2));
  REQUIRE(notes(stage, "web-1", "DeviceUnhealthy").size() == 1);
  CHECK(notes(stage, "web-1", "DeviceUnhealthy")
            .front()
            .ends_with("; next: nothing in mode observe; mode enforce would evict, due at 2026-11-20T12:11:00Z"));
  CHECK(stage.verdicts().front().mode == "observe");
}

TEST_CASE("A verdict about a pod's device names the containers that hold the device, and another verdict none") {
  auto stage = bad_device();
  for (auto& resource : stage.pod_named("web-1").allocated) {
    for (auto& device : resource.devices) device.containers = {"sidecar", "train"};
  }
  stage.upsert_pod("web-1");
  stage.run_for(minutes(2));
  REQUIRE_FALSE(stage.verdicts().empty());
  for (const auto& verdict : stage.verdicts()) {
    const bool is_about_pods_device = verdict.subject.kind == "Pod" && !verdict.device.empty();
    CHECK(verdict.containers.size() == (is_about_pods_device ? 2U : 0U));
  }
  CHECK(stage.verdicts().front().containers == std::vector<std::string>{"sidecar", "train"});
}

TEST_CASE("The condition of a pod that has opted out promises no eviction, and promises it again when that ends") {
  auto stage = bad_device();
  opt_out(stage, true);
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 1);
  const std::string out = "; next: no eviction (OptedOut): device-health.io/opt-out: \"true\" on the pod";
  CHECK(stage.conditions().back().wanted->message.ends_with(out));
  CHECK(notes(stage, "web-1", "DeviceUnhealthy").front().ends_with(out));
  CHECK(stage.verdicts().front().mode == "enforce");
  stage.run_for(minutes(30), Seconds(10));
  CHECK(stage.conditions().size() == 1);  // nothing has changed, nothing is written
  opt_out(stage, false);
  stage.advance(minutes(1));
  (void)stage.turn();
  REQUIRE(stage.conditions().size() == 2);
  CHECK(stage.conditions().back().wanted->message.ends_with("; next: eviction, due at 2026-11-20T12:11:00Z"));
}

TEST_CASE("Under a pause the condition promises no eviction once one would be due, and again when the pause ends") {
  auto stage = bad_device();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.conditions().size() == 2);  // until it is due, the time of the eviction is the next that is to come
  CHECK(stage.conditions().front().wanted->message.ends_with("; next: eviction, due at 2026-11-20T12:11:00Z"));
  CHECK(stage.conditions().back().wanted->message.ends_with(
      "; next: no eviction (Paused): ControllerLimits has paused: true"));
  stage.run_for(minutes(60), Seconds(10));
  CHECK(stage.conditions().size() == 2);  // nothing has changed, nothing is written
  stage.limits().paused = false;
  stage.send_policy();
  CHECK(stage.run_for(minutes(5)) == std::vector<std::string>{"web-1"});
  REQUIRE(stage.conditions().size() >= 3);
  CHECK(stage.conditions().at(2).wanted->message.ends_with("; next: eviction, due at 2026-11-20T12:11:00Z"));
}

TEST_CASE("What else holds a pod under a pause changes nothing in what its condition says of it") {
  auto stage = bad_device();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.conditions().size() == 2);
  stage.report("web-1", Health::Unknown);
  stage.run_for(minutes(5), Seconds(10));
  REQUIRE(stage.reasons("web-1").contains("WaitingWhileUnknown"));
  CHECK(stage.conditions().size() == 2);
}

TEST_CASE("A pod that falls due under a pause while its device is Unknown is promised no eviction either") {
  auto stage = bad_device();
  stage.run_for(minutes(2));
  stage.limits().paused = true;
  stage.send_policy();
  stage.report("web-1", Health::Unknown);
  stage.run_for(minutes(3), minutes(1));
  REQUIRE(stage.conditions().size() == 1);
  stage.run_for(minutes(10), minutes(1));
  REQUIRE(stage.conditions().size() == 2);
  CHECK(stage.conditions().back().wanted->message.contains("; next: no eviction (Paused)"));
}

TEST_CASE("A pod that is evicted as soon as a pause ends does not read to its end that it stays") {
  auto stage = bad_device();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(6) + Seconds(20), Seconds(1));
  REQUIRE(stage.conditions().size() == 2);
  REQUIRE(stage.conditions().back().wanted->message.contains("no eviction (Paused)"));
  stage.limits().paused = false;
  stage.send_policy();
  REQUIRE(stage.run_for(Seconds(10)) == std::vector<std::string>{"web-1"});
  CHECK(stage.conditions().size() == 3);
  CHECK(stage.conditions().back().wanted->message.ends_with("; next: eviction, due at 2026-11-20T12:11:00Z"));
}

TEST_CASE("A pod whose eviction was accepted is not told that a later pause keeps it") {
  auto stage = bad_device();
  stage.show_evictions(false);
  REQUIRE(stage.run_for(minutes(7), Seconds(1)) == std::vector<std::string>{"web-1"});
  const auto written = stage.conditions().size();
  stage.limits().paused = true;
  stage.send_policy();
  stage.run_for(minutes(1), Seconds(5));
  CHECK(stage.conditions().size() == written);
}

TEST_CASE("Under a brake the condition promises no eviction, and is not written for each device that joins") {
  test::Stage stage;
  stage.limits().brake_trial_after = std::chrono::hours(720);
  stage.node("node-a", 8);
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = "p-" + std::to_string(i),
               .owner = "ReplicaSet/" + std::to_string(i),
               .device = "gpu-" + std::to_string(i)});
  }
  stage.send_policy();
  stage.settle();
  for (int bad = 3; bad <= 8; ++bad) {
    for (int i = 0; i < bad; ++i) stage.report("p-" + std::to_string(i), Health::Unhealthy);
    stage.node("node-a", 8, 8 - bad);
    stage.run_for(minutes(5), Seconds(10));
  }
  std::vector<std::string> of_first;
  for (const auto& condition : stage.conditions()) {
    if (condition.name == "p-0") of_first.push_back(condition.wanted->message);
  }
  REQUIRE_FALSE(of_first.empty());
  CHECK(of_first.size() <= 2);
  CHECK(of_first.back().ends_with(
      "; next: no eviction (Braked): the brake stops new evictions here until it is released"));
}

TEST_CASE("An opt-out after the condition was written is said in it, a minute after the last writing at the latest") {
  auto stage = bad_device();
  stage.run_for(Seconds(65));
  REQUIRE(stage.conditions().size() == 1);
  opt_out(stage, true);
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 2);
  CHECK(stage.conditions().back().wanted->message.find("; next: no eviction (OptedOut)") != std::string::npos);
}

TEST_CASE("A restart writes no condition anew for the words of what comes next") {
  auto stage = bad_device();
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 1);
  stage.restart();
  stage.run_for(minutes(2));
  CHECK(stage.conditions().size() == 1);
}

TEST_CASE("The last Event on an evicted pod repeats the driver's words, and the pod's controller gets one Event") {
  auto stage = bad_device();
  stage.run_for(minutes(20));
  const auto said = notes(stage, "web-1", "Evicted");
  REQUIRE(said.size() == 1);
  CHECK(said.front().ends_with(": " + std::string(kXid79)));
  const auto told = notes(stage, "web", "Evicted");
  REQUIRE(told.size() == 1);
  CHECK(told.front() == "pod web-1 on " + said.front());
  const auto of_owner = [](const notice::EmitEvent& event) { return event.regarding.kind == "ReplicaSet"; };
  CHECK(std::ranges::count_if(stage.events(), of_owner) == 1);
}

TEST_CASE("Of whatever kind the pod's controller is, it gets one Event about an evicted pod") {
  for (const std::string kind : {"ReplicaSet", "StatefulSet", "Job"}) {
    CAPTURE(kind);
    test::Stage stage;
    stage.node("node-a", 4, 3);
    stage.node("node-b", 4);
    stage.pod({.name = "web-1", .owner = kind + "/web", .device = "gpu-0", .health = Health::Unhealthy});
    stage.send_policy();
    stage.run_for(minutes(20));
    REQUIRE(notes(stage, "web-1", "Evicted").size() == 1);
    const auto told = notes(stage, "web", "Evicted");
    REQUIRE(told.size() == 1);
    CHECK(told.front() == "pod web-1 on " + notes(stage, "web-1", "Evicted").front());
    const auto is_of_kind = [&](const notice::EmitEvent& event) { return event.regarding.kind == kind; };
    CHECK(std::ranges::any_of(stage.events(), is_of_kind));
  }
}

TEST_CASE("A bare pod has no controller that could be told") {
  test::Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "bare", .owner = "", .device = "gpu-0", .health = Health::Unhealthy});
  stage.policy().evict->bare_pods = true;
  stage.send_policy();
  stage.run_for(minutes(10));
  CHECK(notes(stage, "bare", "Evicted").size() == 1);
}

TEST_CASE("An opt-out that stands as a label is said to have none of its effect, and the pod is evicted") {
  for (const bool on_pod : {true, false}) {
    CAPTURE(on_pod);
    auto stage = bad_device();
    const k8s::StringMap labels = {{"device-health.io/opt-out", "true"}};
    if (on_pod) {
      stage.pod_named("web-1").meta.labels = labels;
      stage.upsert_pod("web-1");
    } else {
      k8s::Namespace ns;
      ns.meta.name = "default";
      ns.meta.uid = "uid-default";
      ns.meta.labels = labels;
      stage.put(ns);
    }
    stage.run_for(minutes(2));
    REQUIRE(stage.verdict("web-1", Reason::AnnotationRefused) != nullptr);
    CHECK(stage.verdict("web-1", Reason::AnnotationRefused)->message ==
          std::string("the label device-health.io/opt-out on ") + (on_pod ? "the pod" : "Namespace default") +
              " has no effect: write it as an annotation");
    CHECK(stage.has_event("web-1", "AnnotationRefused"));
    CHECK(stage.run_for(minutes(10)) == std::vector<std::string>{"web-1"});
  }
}
