// NVIDIA's driver 0.5.0 keeps one taint a key: a harmless word that is written over a fault has not taken it back.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/rfc3339.h"
#include "tests/controller/cluster/driver_taint_stage.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

k8s::Taint lost(std::string value, std::string effect) {
  return {.key = "gpu.example.com/lost", .value = std::move(value), .effect = std::move(effect)};
}

/// The driver names a fault for so long, and then writes a harmless word over it.
void write_over(Stage& stage, Millis time) {
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(time);
  publish_taints(stage, {.first = {xid("43", "None")}});
}

}  // namespace

TEST_CASE("An operator's word ends the incident of a fault that a harmless word was written over") {
  auto stage = held_device();
  stage.policy().evict.reset();
  stage.policy().taint = TaintRules{};
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(2));
  REQUIRE(count_of_conditions(stage, true) == 1);
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.run_for(minutes(20), Seconds(10));
  REQUIRE(count_of_conditions(stage, false) == 0);
  auto node = stage.node_named("node-a");
  node.meta.annotations = {{"device-health.io/acknowledge", format_rfc3339(stage.now().wall)}};
  stage.put(node);
  stage.run_for(minutes(20), Seconds(10));
  CHECK(count_of_conditions(stage, false) == 1);
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("A fault that a harmless word was written over before its incident opened is forgotten after 15 minutes") {
  auto stage = held_device();
  stage.policy().after = minutes(10);
  stage.send_policy();
  write_over(stage, minutes(1));
  stage.settle();
  REQUIRE(stage.reasons("train-1") == "WaitingWhileUnknown");
  stage.run_for(kLongestUnknown - Millis(1), minutes(1));
  REQUIRE(stage.reasons("train-1") == "WaitingWhileUnknown");
  const auto wake = stage.wake_at();
  REQUIRE(wake);
  CHECK((*wake == stage.now().mono + Millis(1)));
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("Of two faults that harmless words were written over the later one lasts for its own time") {
  auto stage = held_device();
  stage.policy().after = hours(1);
  stage.send_policy();
  write_over(stage, minutes(1));
  stage.run_for(minutes(10), minutes(1));
  publish_taints(stage, {.first = {xid("43", "None"), lost("true", "NoSchedule")}});
  stage.run_for(minutes(1));
  publish_taints(stage, {.first = {xid("43", "None"), lost("false", "None")}});
  stage.run_for(kLongestUnknown - Millis(1), minutes(1));
  CHECK(stage.reasons("train-1") == "WaitingWhileUnknown");
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("An open incident goes on by its own fault, whatever else comes and is written over later") {
  auto stage = held_device();
  stage.policy().after = minutes(2);
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(3));
  REQUIRE(stage.reasons("train-1") == "WouldEvict");
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.run_for(minutes(2));
  const auto said = stage.reasons("train-1");
  publish_taints(stage, {.first = {xid("43", "None"), lost("true", "NoSchedule")}});
  stage.run_for(minutes(1));
  CHECK(stage.reasons("train-1") == "WouldEvict");
  publish_taints(stage, {.first = {xid("43", "None"), lost("false", "None")}});
  stage.run_for(minutes(20), Seconds(10));
  CHECK(stage.reasons("train-1") == said);
}

TEST_CASE("What a policy leaves alone is another policy's when its fault is forgotten, at once") {
  auto stage = held_device();
  auto& policies = stage.whole_policy().policies;
  policies.push_back(policies.front());
  policies[0].mode = Mode::Off;
  policies[0].match.device_taints = {{.key = std::string(kXid), .effect = "NoSchedule"}};
  policies[1].name = "q";
  policies[1].mode = Mode::Observe;
  policies[1].match.device_taints = {{.key = std::string(kXid), .effect = "None"}};
  policies[1].evict->untainted = true;
  stage.send_policy();
  write_over(stage, minutes(1));
  stage.run_for(kLongestUnknown - Millis(1), minutes(1));
  REQUIRE(stage.reasons("train-1").empty());
  CHECK((*stage.wake_at() == stage.now().mono + Millis(1)));
  stage.advance(Millis(1));
  stage.settle();
  CHECK(stage.reasons("train-1") == "WouldEvict");
  stage.run_for(minutes(20), Seconds(10));
  CHECK(stage.reasons("train-1") == "WouldEvict");
}

TEST_CASE("What is kept of a taint is the incident's policy's, not another's that names the key with another value") {
  auto stage = held_device();
  stage.whole_policy().own_namespace = "dhc";
  auto& policies = stage.whole_policy().policies;
  policies.push_back(policies.front());
  policies[0].name = "fatal";
  policies[0].match.device_taints = {{.key = std::string(kXid), .value = "79", .effect = {}}};
  policies[1].name = "other";
  policies[1].mode = Mode::Observe;
  policies[1].match.device_taints = {{.key = std::string(kXid), .effect = {}}};
  stage.send_policy();
  publish_taints(stage, {.first = {xid("63")}});
  stage.run_for(minutes(3));
  REQUIRE(stage.verdict("train-1", Reason::WouldEvict) != nullptr);
  stage.restart();
  publish_taints(stage, {.first = {xid("43", "None")}});
  CHECK(stage.run_for(minutes(1), Seconds(10)).empty());
  CHECK_FALSE(stage.verdicts().empty());
  for (const auto& verdict : stage.verdicts()) CHECK(verdict.policy != "fatal");
}

TEST_CASE("A policy that leaves a whole key alone leaves it alone also while its taint is only remembered") {
  auto stage = held_device();
  auto& policies = stage.whole_policy().policies;
  policies.front().mode = Mode::Observe;
  stage.send_policy();
  publish_taints(stage, {.first = {xid("79")}});
  stage.run_for(minutes(3));
  REQUIRE(stage.verdict("train-1", Reason::WouldEvict) != nullptr);
  policies.insert(policies.begin(), policies.front());
  policies[0].name = "not-ours";
  policies[0].mode = Mode::Off;
  policies[0].match.device_taints = {{.key = std::string(kXid), .effect = {}}};
  stage.send_policy();
  publish_taints(stage, {.first = {xid("43", "None")}});
  stage.run_for(minutes(20), Seconds(10));
  CHECK(stage.reasons("train-1").empty());
}

TEST_CASE("What is kept of a taint is left alone by its value and effect, too, and by no others") {
  struct Case {
    std::string value;
    std::string effect;
    bool left_alone;
  };
  for (const auto& one :
       std::vector<Case>{{"79", {}, true}, {"*", "NoSchedule", true}, {"48", {}, false}, {"*", "NoExecute", false}}) {
    CAPTURE(one.value);
    CAPTURE(one.effect);
    auto stage = held_device();
    stage.whole_policy().own_namespace = "dhc";
    auto& policies = stage.whole_policy().policies;
    policies.front().evict->after = minutes(30);
    stage.send_policy();
    publish_taints(stage, {.first = {xid("79")}});
    stage.run_for(minutes(3));
    REQUIRE_FALSE(stage.reasons("train-1").empty());
    policies.insert(policies.begin(), policies.front());
    policies[0].name = "not-ours";
    policies[0].mode = Mode::Off;
    policies[0].match.device_taints = {{.key = std::string(kXid), .value = one.value, .effect = one.effect}};
    stage.send_policy();
    publish_taints(stage, {.first = {xid("43", "None")}});
    stage.restart();
    stage.run_for(minutes(1), Seconds(10));
    CHECK(stage.reasons("train-1").empty() == one.left_alone);
  }
}

TEST_CASE("A free device whose fault was written over is a place again when that is forgotten") {
  auto stage = held_device();
  stage.policy().after = Seconds(0);
  stage.policy().evict->untainted = true;
  stage.send_policy();
  const auto fault = xid("79");
  publish_taints(stage, {.second = {fault}});
  stage.run_for(minutes(1));
  publish_taints(stage, {.second = {xid("43", "None")}});
  stage.run_for(minutes(14), minutes(1));
  publish_taints(stage, {.first = {fault}, .second = {xid("43", "None")}});
  CHECK(stage.run_for(minutes(1) - Millis(1), Seconds(10)).empty());
  REQUIRE(stage.verdict("train-1", Reason::NoReplacementDevice) != nullptr);
  stage.advance(Millis(1));
  CHECK(stage.settle() == std::vector<std::string>{"train-1"});
}

TEST_CASE("A fault that a harmless word was written over is none of the pods that come later") {
  auto stage = held_device();
  stage.policy().evict.reset();
  stage.policy().taint = TaintRules{};
  const bool is_open = [] {
    bool open = false;
    SUBCASE("its incident is open") { open = true; }
    SUBCASE("its incident has ended") {}
    return open;
  }();
  if (!is_open) stage.policy().recover.hold = hours(1);
  stage.send_policy();
  write_over(stage, minutes(2));
  stage.run_for(minutes(1));
  stage.remove_pod("train-1");
  stage.run_for(hours(3), Seconds(30));
  const auto told = count_of_conditions(stage, true);
  stage.pod({.name = "train-2", .owner = "Job/t", .health = Health::Unknown, .claim = "c2"});
  stage.claim("c2", {"gpu-0"}, "train-2");
  stage.run_for(minutes(2));
  CHECK(count_of_conditions(stage, true) == told);
  CHECK(stage.reasons("train-2").empty());
}

}  // namespace dhc::test
