// Each of these was a fault once.
#include <algorithm>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "domain/contract/condition_text.h"
#include "domain/contract/names.h"
#include "domain/limits/token_bucket.h"
#include "k8s-client/model/decoder.h"
#include "reconcilers/notice/build.h"
#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

TEST_CASE("The condition's message comes back from the API as it was sent, with eight devices and hostile words") {
  std::vector<ConditionLine> lines;
  for (int i = 0; i < 8; ++i) {
    lines.push_back(
        {.device = fmt::format("gpu.example.com/node-a/gpu-{}", i),
         .since = WallTime(Seconds(1'000'000 + i)),
         .policy = "p",
         .said = "Xid 79\n\x1b[31m \xc2\x85 || gpu.example.com/node-a/gpu-9 unhealthy since 2020-01-01T00:00:00Z " +
                 std::string(400, 'x'),
         .next = "eviction"});
  }
  const auto message = condition_message(lines);
  const auto request = notice::build_condition(
      {.ns = "ns",
       .name = "p",
       .uid = "u",
       .wanted = notice::ApplyCondition::Wanted{
           .status = true, .reason = "DeviceUnhealthy", .message = message, .last_transition = {}}});
  REQUIRE(request.has_value());
  auto pod = nlohmann::json::parse(request->body);
  pod["metadata"]["namespace"] = "ns";
  pod["metadata"]["resourceVersion"] = "7";
  pod["spec"]["containers"] = nlohmann::json::array({{{"resources", {{"limits", {{"example.com/gpu", "1"}}}}}}});
  const auto read = k8s::Decoder(k8s::Kind::Pod, kKeptFields).decode_object(pod.dump());
  REQUIRE(read.has_value());
  const auto& conditions = std::get<k8s::Pod>(*read).conditions;
  REQUIRE(conditions.size() == 1);
  CHECK(conditions.front().message == message);
  const auto words = read_condition(conditions.front().message);
  REQUIRE(words.find("gpu.example.com/node-a/gpu-7") != nullptr);
  CHECK(words.find("gpu.example.com/node-a/gpu-7")->since == lines[7].since);
  CHECK(words.find("gpu.example.com/node-a/gpu-9") == nullptr);
}

TEST_CASE("A driver that speaks only through claim conditions has its pod evicted, and its recovery is seen") {
  Stage stage;
  stage.policy().match.claim_conditions = {{"Ready", "False"}};
  stage.policy().evict->after = minutes(2);
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-0"});
  stage.pod({.name = "train-1", .owner = "Job/t", .health = Health::Unknown, .claim = "c"});
  const auto said = [&](const char* status) {
    auto& claim = stage.claim("c", {"gpu-0"}, "train-1");
    claim.devices = {
        {std::string(kDriver), "node-a", "gpu-0", {{"Ready", status, "LinkDown", "no carrier", stage.now().wall}}}};
    stage.upsert_claim("c");
  };
  said("False");
  SUBCASE("evicted") { CHECK(stage.run_for(minutes(3)) == Names{"train-1"}); }
  SUBCASE("recovered") {
    CHECK(stage.run_for(minutes(2)).empty());
    said("True");
    CHECK(stage.run_for(minutes(3)).empty());
    REQUIRE(!stage.conditions().empty());
    CHECK(!stage.conditions().back().wanted->status);
  }
}

TEST_CASE("A device that recovered and changes hands within one turn is no trap") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(10));
  stage.report("a", Health::Healthy);
  stage.settle();
  stage.remove_pod("a");
  stage.pod({.name = "b", .device = "gpu-0"});
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
}

TEST_CASE("A bucket in debt, however deep, fills again") {
  TokenBucket bucket;
  bucket.set_rate(1, MonoTime{});
  bucket.take(5, MonoTime{Seconds(60)});
  CHECK(bucket.available(MonoTime{minutes(5)}) == 0);
  CHECK(bucket.ready_at(1, MonoTime{minutes(5)}) == MonoTime{minutes(6)});
  CHECK(bucket.available(MonoTime{minutes(6)}) == 1);
  CHECK(bucket.available(MonoTime{std::chrono::hours(1000)}) == 1);
}

TEST_CASE("When observing turns to enforcing, an old incident still waits for its condition and for allocatable") {
  Stage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(minutes(30), Seconds(10));
  stage.policy().mode = Mode::Enforce;
  stage.send_policy();
  const auto first = stage.turn();
  CHECK(evicted(first).empty());
  REQUIRE(stage.conditions().size() == 1);
  CHECK(stage.reasons("web-1") == "WaitingForAllocatable");
  stage.advance(Seconds(59));
  CHECK(evicted(stage.turn()).empty());
  CHECK(stage.reasons("web-1") == "WaitingForAllocatable");
}

TEST_CASE("A co-holder whose eviction a budget refused is not taken for the replacement of the other") {
  Stage stage;
  stage.policy().evict->shared_claims_together = true;
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-0"});
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}};
  stage.upsert_claim("both");
  for (const char* name : {"a", "b"})
    stage.pod({.name = name, .owner = "Job/t", .health = Health::Unhealthy, .claim = "both"});
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  Names sent;
  for (int step = 0; step < 200 && sent.size() < 3; ++step) {
    for (const auto& action : stage.turn()) {
      const auto* evict = std::get_if<eviction::EvictPod>(&action);
      const bool refused = evict != nullptr && evict->name == "b" && sent.size() < 2;
      if (evict != nullptr) sent.push_back(evict->name);
      stage.answer(action, refused ? Status(fail(ErrorKind::Blocked, "not now")) : Status{});
      if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
        stage.pod_named(condition->name).conditions = {
            {"device-health.io/DeviceUnhealthy", "True", "DeviceUnhealthy", condition->wanted->message, {}}};
        stage.upsert_pod(condition->name);
      }
    }
    stage.advance(Millis(500));
  }
  CHECK(sent == Names{"a", "b", "b"});
}

TEST_CASE("A True that an enforcing policy wrote is taken back although a higher policy observes other faults") {
  Stage stage;
  auto observing = stage.policy();
  observing.name = "xid-48";
  observing.mode = Mode::Observe;
  observing.match.message = MessagePattern::compile("Xid 48").value();
  stage.whole_policy().policies.insert(stage.whole_policy().policies.begin(), observing);
  stage.whole_policy().policies[1].evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy, .message = "Xid 79"});
  stage.run_for(minutes(2));
  REQUIRE(stage.conditions().size() == 1);
  stage.report("web-1", Health::Healthy);
  stage.run_for(minutes(1));
  REQUIRE(stage.conditions().size() == 2);
  CHECK(!stage.conditions().back().wanted->status);
}

TEST_CASE("An eviction without an answer holds its slot, and one that was never sent does not") {
  Stage stage;
  stage.limits() = {
      .evictions_per_minute = 600, .max_in_flight = 1, .per_node = 9, .per_owner = 9, .brake_at_least = 99};
  stage.send_policy();
  stage.node("node-a", 9, 7);
  stage.pod({.name = "p-0", .owner = "ReplicaSet/a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.pod({.name = "p-1", .owner = "ReplicaSet/b", .device = "gpu-1", .health = Health::Unhealthy});
  stage.run_for(Seconds(59));
  stage.advance(Seconds(1));
  std::optional<Action> first;
  for (int step = 0; step < 10 && !first; ++step) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<eviction::EvictPod>(action)) {
        first = action;
        continue;
      }
      stage.answer(action);
      if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
        stage.pod_named(condition->name).conditions = {
            {"device-health.io/DeviceUnhealthy", "True", "DeviceUnhealthy", condition->wanted->message, {}}};
        stage.upsert_pod(condition->name);
      }
    }
  }
  REQUIRE(first.has_value());
  REQUIRE(std::get<eviction::EvictPod>(*first).name == "p-0");
  SUBCASE("TimedOut: it may have happened") {
    stage.answer(*first, fail(ErrorKind::TimedOut, "no answer"));
    CHECK(evicted(stage.turn()).empty());
    CHECK(stage.reasons("p-1") == "TooManyInFlight");
  }
  SUBCASE("never begun: decided anew at once, also on a pause") {
    stage.limits().paused = true;
    stage.send_policy();
    stage.answer(*first, fail(ErrorKind::Cancelled, "not sent"));
    CHECK(evicted(stage.turn()).empty());
    CHECK(stage.reasons("p-0") == "Paused");
    stage.limits().paused = false;
    stage.send_policy();
    CHECK(evicted(stage.turn()) == Names{"p-0"});
  }
}

TEST_CASE("A drain of a pod that has our condition is not booked as ours") {
  Stage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(minutes(2));
  auto& pod = stage.pod_named("web-1");
  REQUIRE(pod.conditions.size() == 1);
  pod.meta.deletion = stage.now().wall + Seconds(30);
  pod.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "", stage.now().wall});
  stage.upsert_pod("web-1");
  stage.settle();
  CHECK(stage.reasons("web-1") == "AlreadyTerminating");
}

TEST_CASE("Where the pod's Namespace or owner is not known it may have opted out, and is left alone") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
  stage.settle();
  stage.deliver(
      k8s::Delivery(k8s::Remove{.kind = k8s::Kind::ReplicaSet, .ns = "default", .name = "web", .uid = "uid-web"}));
  CHECK(stage.run_for(minutes(3), Seconds(10)).empty());
  CHECK(stage.reasons("web-1") == "OptOutUnknown");
}

TEST_CASE("A configuration that is rejected before any was accepted is said as a verdict and an Event") {
  Stage stage;
  Controller controller;
  std::vector<Message> messages;
  for (const auto kind : k8s::kAllKinds)
    messages.emplace_back(k8s::Delivery(k8s::Snapshot{.kind = kind, .objects = {}, .served = true}));
  messages.emplace_back(
      PolicyRejected{.why = "line 3: no such key", .source = Subject{"ConfigMap", "system", "policies", "uid-map"}});
  const auto turn = controller.turn(messages, stage.now());
  REQUIRE(turn.actions.size() == 1);
  CHECK(std::get<notice::EmitEvent>(turn.actions.front()).reason == "ConfigRejected");
  REQUIRE(controller.verdicts().size() == 1);
  CHECK(controller.verdicts().front().reason == Reason::ConfigRejected);
}

}  // namespace dhc::test
