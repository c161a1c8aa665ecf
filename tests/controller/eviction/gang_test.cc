// A gang in one move: all its pods are told and evicted as one unit, or nobody goes.
#include <algorithm>
#include <expected>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/controller/eviction/gang_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using GangNames = std::vector<std::string>;

namespace {
const GangNames kAllFour = {"w-0", "w-1", "w-2", "w-3"};
const GangNames kNoneGone;

/// A pod of the gang's tenant on a device of node-x.
void break_alone(GangStage& stage, int number) {
  stage.pod({.name = fmt::format("alone-{}", number),
             .node = "node-x",
             .owner = fmt::format("ReplicaSet/r-{}", number),
             .device = fmt::format("gpu-{}", number),
             .health = Health::Unhealthy});
}

/// A pod of another tenant there.
void break_other(GangStage& stage, int number) {
  const auto name = fmt::format("alone-{}", number);
  stage.pod({.name = name,
             .node = "node-x",
             .device = fmt::format("gpu-{}", number),
             .health = Health::Unhealthy,
             .ns = "other"});
  stage.own_by_cluster(name, fmt::format("r-{}", number));
}

/// 20 s in which one more pod breaks; who went in the 20 s before is gone at their end.
class Trickle {
 public:
  Trickle(GangStage& stage, void (*break_one)(GangStage&, int)) : stage_(stage), break_one_(break_one) {}

  GangNames pass() {
    break_one_(stage_, broken_++);
    auto gone = stage_.run_for(Seconds(20));
    for (const auto& name : std::exchange(in_flight_, gone)) stage_.remove_pod(name);
    return gone;
  }
  [[nodiscard]] int broken() const { return broken_; }

 private:
  GangStage& stage_;
  void (*break_one_)(GangStage&, int);
  int broken_ = 0;
  GangNames in_flight_;
};

bool is_of_gang(const std::string& pod) { return pod.starts_with("w-"); }
}  // namespace

TEST_CASE("All pods of a gang go with the one on a bad device, and not before its time") {
  GangStage stage;
  CHECK(stage.run_until("12:00:59") == kNoneGone);
  CHECK(stage.run_until("12:01:02") == kAllFour);
  std::vector<std::string> order;
  for (const auto& write : stage.writes()) {
    if (write.starts_with("evict ")) order.push_back(write);
  }
  REQUIRE(order.size() == 4);
  CHECK(order.front() == "evict w-0");
}

TEST_CASE("With groups: Each, a mark of a gang changes nothing") {
  GangStage stage;
  stage.policy().evict->groups_together = false;
  stage.send_policy();
  CHECK(stage.run_until("12:02:00") == GangNames{"w-0"});
  CHECK(stage.reasons("w-1").empty());
}

TEST_CASE("Pods without a device go with their gang, pods of no gang and of another namespace's do not") {
  GangStage stage;
  stage.pod({.name = "launcher", .node = "node-1", .owner = "StatefulSet/l"});
  stage.mark("launcher", "train");
  stage.pod({.name = "alone", .node = "node-1", .owner = "StatefulSet/w", .device = "gpu-1"});
  stage.pod({.name = "there", .node = "node-1", .owner = "StatefulSet/w", .device = "gpu-2", .ns = "other"});
  stage.mark("there", "train");
  CHECK(stage.run_until("12:02:00") == GangNames{"launcher", "w-0", "w-1", "w-2", "w-3"});
}

TEST_CASE("What holds one pod of a gang holds all, and each says which pod and why") {
  GangStage stage;
  stage.annotate("w-2", kOptOutAnnotation, "true");
  CHECK(stage.run_until("12:05:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::OptedOut) ==
        "pod w-2 of gang train: device-health.io/opt-out: \"true\" on the pod");
  CHECK(stage.message("w-1", Reason::GangHeld) ==
        "it goes with pod w-0 of gang train, which holds node-0/example.com/gpu/gpu-0: OptedOut: pod w-2 of gang "
        "train: device-health.io/opt-out: \"true\" on the pod");
  stage.annotate("w-2", kOptOutAnnotation, "");
  CHECK(stage.run_until("12:05:05") == kAllFour);
}

TEST_CASE("A gang waits for the node of one of its pods, and says GangHeld") {
  GangStage stage;
  stage.node("node-3", 4, 4, false);
  CHECK(stage.run_until("12:05:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::GangHeld).starts_with("pod w-3 of gang train: NodeNotReady: node node-3"));
  stage.node("node-3", 4, 4);
  CHECK(stage.run_until("12:05:05") == kAllFour);
}

TEST_CASE("A budget that allows fewer pods than the gang has holds all of them, at as many it lets all go") {
  GangStage stage;
  stage.budget(3);
  CHECK(stage.run_until("12:05:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::BlockedByBudget) ==
        "PodDisruptionBudget train allows 3 disruptions, and the 4 pods of gang train that it selects need 4: none of "
        "them goes before it allows all");
  CHECK(stage.verdict("w-3", Reason::GangHeld) != nullptr);
  stage.budget(4);
  CHECK(stage.run_until("12:05:05") == kAllFour);
}

TEST_CASE("A budget counts the pods that it selects and that spend a disruption, not the whole gang") {
  GangStage stage;
  stage.pod_named("w-3").meta.labels = {{"app", "other"}};
  stage.upsert_pod("w-3");
  auto& budget = stage.budget(2);
  CHECK(stage.run_until("12:02:00") == kNoneGone);
  // The pod on the bad device is not Ready, and the others are as many as the budget wants.
  stage.pod_named("w-0").conditions.change_if([](const auto& one) { return one.type == "Ready"; },
                                              [](k8s::Condition& one) { one.status = "False"; });
  stage.upsert_pod("w-0");
  budget.current_healthy = 2;
  budget.desired_healthy = 2;
  stage.upsert_budget();
  CHECK(stage.run_until("12:02:05") == kAllFour);
}

TEST_CASE("A budget whose status is behind its spec holds a gang") {
  GangStage stage;
  auto& budget = stage.budget(4);
  budget.generation = 2;
  budget.observed_generation = 1;
  stage.upsert_budget();
  CHECK(stage.run_until("12:02:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::BlockedByBudget) ==
        "PodDisruptionBudget train has changed, and its status does not show it yet");
  budget.observed_generation = 2;
  stage.upsert_budget();
  CHECK(stage.run_until("12:02:05") == kAllFour);
}

TEST_CASE("A pod under two budgets, whose eviction the API server refuses, holds its gang") {
  GangStage stage;
  stage.budget(9);
  stage.budget(9, "other");
  CHECK(stage.run_until("12:02:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::BlockedByBudget) ==
        "PodDisruptionBudgets other and train both select pod w-0 of gang train: the API server refuses its eviction "
        "until one of them does not");
  stage.remove(k8s::Kind::PodDisruptionBudget, "other");
  CHECK(stage.run_until("12:02:05") == kAllFour);
}

TEST_CASE("Nobody of a gang goes while the watch of budgets is silent") {
  GangStage stage;
  stage.report("w-0", Health::Healthy);
  CHECK(stage.run_until("12:00:10") == kNoneGone);
  stage.silence(k8s::Kind::PodDisruptionBudget);
  stage.run_until("12:04:50");
  stage.report("w-0", Health::Unhealthy);
  CHECK(stage.run_until("12:07:00") == kNoneGone);
  CHECK(stage.verdict("w-0", Reason::ViewTooOld) != nullptr);
  stage.speak(k8s::Kind::PodDisruptionBudget);
  CHECK(stage.run_for(Seconds(3)).size() == 4);
}

TEST_CASE("If the first pod is refused nobody has gone, and the gang is tried again as a whole") {
  GangStage stage;
  stage.refuse({"w-0"});
  CHECK(stage.run_until("12:01:30") == kNoneGone);
  CHECK(stage.verdict("w-0", Reason::BlockedByBudget) != nullptr);
  CHECK(stage.verdict("w-1", Reason::GangHeld) != nullptr);
  CHECK(std::ranges::count(stage.writes(), "evict w-1") == 0);
  stage.refuse({});
  CHECK(stage.run_until("12:06:30") == kAllFour);
}

TEST_CASE("A refusal midway leaves the gang half: the rest follows first, and nobody is asked twice") {
  GangStage stage;
  stage.refuse({"w-3"});
  CHECK(stage.run_until("12:01:30") == GangNames{"w-0", "w-1", "w-2"});
  CHECK(stage.message("w-3", Reason::GangHalf) ==
        "3 of 4 pods of gang train have gone since 2026-11-20T12:01:00Z, this one is held by BlockedByBudget: "
        "Blocked: the budget says not now; attempt 3");
  CHECK_FALSE(stage.has_event("w-3", "GangHalf"));
  SUBCASE("it goes as soon as it may") {
    stage.refuse({});
    CHECK(stage.run_until("12:10:00") == GangNames{"w-3"});
  }
  SUBCASE("although the device has recovered, or is held by nobody") {
    for (const auto* name : {"w-0", "w-1", "w-2"}) stage.remove_pod(name);
    stage.refuse({});
    CHECK(stage.run_until("12:10:00") == GangNames{"w-3"});
  }
  SUBCASE("after ten minutes an Event says that it is stuck, one millisecond earlier none") {
    stage.advance(std::chrono::duration_cast<Millis>(*parse_rfc3339("2026-11-20T12:11:00Z") - stage.now().wall) -
                  Millis(1));
    stage.settle();
    CHECK(stage.verdict("w-3", Reason::GangStuck) == nullptr);
    stage.advance(Millis(1));
    stage.settle();
    CHECK(stage.verdict("w-3", Reason::GangStuck) != nullptr);
    CHECK(stage.has_event("w-3", "GangStuck"));
  }
  SUBCASE("after a restart it is gone on with, and what has come to the gang since is let alone") {
    for (const auto* name : {"w-0", "w-1", "w-2"}) stage.remove_pod(name);
    stage.pod({.name = "w-9", .node = "node-1", .owner = "StatefulSet/w", .device = "gpu-3"});
    stage.mark("w-9", "train");
    stage.restart();
    stage.refuse({});
    CHECK(stage.run_until("12:10:00") == GangNames{"w-3"});
  }
  SUBCASE("a pause holds it, and an opt-out holds it for good") {
    stage.refuse({});
    stage.limits().paused = true;
    stage.send_policy();
    CHECK(stage.run_until("12:09:00") == kNoneGone);
    CHECK(stage.message("w-3", Reason::GangHalf).find("held by Paused") != std::string::npos);
    stage.limits().paused = false;
    stage.annotate("w-3", kOptOutAnnotation, "true");
    stage.send_policy();
    CHECK(stage.run_until("12:20:00") == kNoneGone);
    CHECK(stage.message("w-3", Reason::GangStuck).find("held by OptedOut") != std::string::npos);
  }
  SUBCASE("a policy that says Each by now evicts nobody more") {
    stage.refuse({});
    stage.policy().evict->groups_together = false;
    stage.send_policy();
    CHECK(stage.run_until("12:09:00") == kNoneGone);
    CHECK(stage.message("w-3", Reason::GangHalf).find("evict.groups: Together any more") != std::string::npos);
  }
  SUBCASE("an hour after the first has gone it is let alone") {
    for (const auto* name : {"w-0", "w-1", "w-2"}) stage.remove_pod(name);
    CHECK(stage.run_for(minutes(59), minutes(1)) == kNoneGone);
    CHECK(stage.verdict("w-3", Reason::GangStuck) != nullptr);
    CHECK(stage.run_for(minutes(2), minutes(1)) == kNoneGone);
    stage.refuse({});
    CHECK(stage.run_for(minutes(60), minutes(5)) == kNoneGone);
    CHECK(stage.reasons("w-3").empty());
  }
  SUBCASE("whoever leaves the gang stays") {
    stage.refuse({});
    stage.mark("w-3", "");
    CHECK(stage.run_until("12:09:00") == kNoneGone);
    CHECK(stage.reasons("w-3").empty());
  }
}

TEST_CASE("A drain that takes a pod of a gang which was charged and refused begins nothing") {
  GangStage stage;
  stage.refuse({"w-0"});
  CHECK(stage.run_until("12:01:30") == kNoneGone);
  stage.report("w-0", Health::Healthy);
  auto& drained = stage.pod_named("w-2");
  drained.meta.deletion = stage.now().wall + Seconds(30);
  drained.conditions.push_back({.type = "DisruptionTarget", .status = "True", .reason = std::string(kEvictedByApi)});
  stage.upsert_pod("w-2");
  stage.refuse({});
  SUBCASE("here") {}
  SUBCASE("nor before a restart, nor after it, once what was sent before would have shown") {
    stage.remove_pod("w-2");
    stage.restart();
    CHECK(stage.run_until("12:03:30") == kNoneGone);
    stage.remove_pod("w-0");
  }
  CHECK(stage.run_until("12:30:00") == kNoneGone);
  CHECK(stage.verdict("w-3", Reason::GangHalf) == nullptr);
  CHECK(stage.verdict("w-3", Reason::GangStuck) == nullptr);
}

TEST_CASE("A pod of a gang whose accepted eviction has no effect is asked for again after all its time") {
  GangStage stage;
  int asked = 0;
  stage.run_until("12:00:59");
  stage.show_evictions(false);
  stage.answer_evictions([&](const eviction::EvictPod& evict) -> Status {
    if (evict.name == "w-3") ++asked;
    return {};
  });
  stage.run_until("12:02:00");
  CHECK(asked == 1);
  stage.run_until("12:04:00");
  CHECK(asked == 2);
}

TEST_CASE("A half-open brake tries no pod of a gang: the others would be kept") {
  GangStage stage;
  stage.limits().brake_at_least = 1;
  stage.limits().brake_percent = 1;
  stage.limits().brake_trial_after = minutes(5);
  stage.send_policy();
  CHECK(stage.run_until("12:02:00") == kNoneGone);
  REQUIRE(stage.verdict("w-0", Reason::Braked) != nullptr);
  CHECK(stage.run_until("12:30:00") == kNoneGone);
  CHECK(stage.verdict("w-0", Reason::BrakeTrial) == nullptr);
  stage.policy().evict->groups_together = false;
  stage.send_policy();
  CHECK(stage.run_until("12:31:00") == GangNames{"w-0"});
}

TEST_CASE("A process that dies after the first of a gang has gone is followed by one that evicts the rest, once each") {
  GangStage stage;
  stage.run_until("12:00:59");
  stage.advance(Seconds(1));
  bool restarted = false;
  for (int turn = 0; turn < 30 && !restarted; ++turn) {
    for (const auto& action : stage.turn()) {
      stage.answer(action);
      stage.show(action);
      restarted = restarted || std::holds_alternative<eviction::EvictPod>(action);
    }
  }
  REQUIRE(restarted);
  CHECK(stage.pod_named("w-0").meta.deletion);
  CHECK_FALSE(stage.pod_named("w-1").meta.deletion);
  stage.restart();
  CHECK(stage.run_for(Seconds(5)) == GangNames{"w-1", "w-2", "w-3"});
  CHECK(std::ranges::count(stage.writes(), "evict w-0") == 1);
}

TEST_CASE("The owners of all pods of a gang are read, also of those that go with another's device") {
  GangStage stage;
  stage.own_by_cluster("w-1", "other");
  CHECK(stage.run_until("12:02:00") == kAllFour);
  REQUIRE(stage.reads().size() == 1);
  CHECK(stage.reads()[0].owner.name == "other");
}

TEST_CASE("What is left of a gang goes on under the next process, also where its owners are read") {
  GangStage stage;
  for (const auto& name : kAllFour) stage.own_by_cluster(name, "train");
  stage.refuse({"w-2"});
  REQUIRE(stage.run_until("12:01:10") == GangNames{"w-0", "w-1", "w-3"});
  stage.refuse({});
  stage.restart();
  CHECK(stage.run_for(Seconds(30)) == GangNames{"w-2"});
}

TEST_CASE("A gang that is larger than the caps ever allow says so at once, and is told of no eviction") {
  GangStage stage;
  stage.policy().evict->notice = NoticeRules{};
  stage.policy().evict->after = minutes(10);
  stage.hold_caps();
  stage.limits().cap_per_day = {.percent = 0, .at_least = 3};
  stage.send_policy();
  CHECK(stage.run_until("12:01:05") == kNoneGone);
  CHECK(stage.message("w-0", Reason::GangTooLarge) ==
        "gang train has 4 pods, and caps.perDay allows 3 evictions a day on devices of example.com/gpu: none of them "
        "goes before it allows all");
  REQUIRE(stage.notice("w-0"));
  CHECK_FALSE(stage.notice("w-0")->evict);
  CHECK_FALSE(stage.notice("w-1"));
}

TEST_CASE("A gang of more than 256 pods is refused, not half taken") {
  GangStage stage;
  for (int i = 4; i <= 256; ++i) {
    stage.pod({.name = GangStage::name(i), .node = "node-1", .owner = "StatefulSet/w"});
    stage.mark(GangStage::name(i), "train");
  }
  CHECK(stage.run_for(minutes(2), Seconds(30)) == kNoneGone);
  CHECK(stage.message("w-0", Reason::GangTooLarge) == "gang train has 257 pods, and at most 256 go together");
  stage.remove_pod(GangStage::name(256));
  CHECK(stage.run_for(Seconds(3)).size() == 256);
}

TEST_CASE("The caps count each pod of a gang, and one device") {
  GangStage stage;
  stage.hold_caps();
  stage.limits().cap_per_day = {.percent = 0, .at_least = 5};
  stage.limits().cap_cluster = {.percent = 0, .at_least = 1};
  stage.limits().cap_node = {.percent = 0, .at_least = 1};
  stage.send_policy();
  CHECK(stage.run_until("12:02:00") == kAllFour);
  for (const auto& name : kAllFour) stage.remove_pod(name);
  stage.node("node-x", 4, 3);
  stage.pod(
      {.name = "x-0", .node = "node-1", .owner = "StatefulSet/x", .device = "gpu-1", .health = Health::Unhealthy});
  stage.pod({.name = "x-1", .node = "node-1", .owner = "StatefulSet/x", .device = "gpu-2"});
  stage.mark("x-0", "x");
  stage.mark("x-1", "x");
  CHECK(stage.run_until("12:10:00") == kNoneGone);
  CHECK(stage.verdict("x-0", Reason::CapReached) != nullptr);
}

TEST_CASE("Pods that go one by one leave a gang its tokens, though each needs fewer") {
  GangStage stage;
  stage.limits().evictions_per_minute = 2;
  stage.send_policy();
  stage.annotate("w-2", kOptOutAnnotation, "true");
  stage.node("node-x", 60, 0);
  int broken = 0;
  const auto break_one_more = [&] {
    break_alone(stage, broken++);
    return stage.run_for(Seconds(20));
  };
  for (int i = 0; i < 12; ++i) CHECK(std::ranges::none_of(break_one_more(), is_of_gang));
  stage.annotate("w-2", kOptOutAnnotation, "");
  stage.settle();
  REQUIRE(stage.verdict("w-0", Reason::RateLimited) != nullptr);
  const auto ready_at = stage.verdict("w-0", Reason::RateLimited)->next_at;
  GangNames gone;
  for (int i = 0; i < 6 && gone.empty(); ++i) {
    // What is told of its turn stands, whoever else is refused or comes.
    CHECK(stage.verdict("w-0", Reason::RateLimited)->next_at == ready_at);
    gone = break_one_more();
    std::erase_if(gone, [](const auto& name) { return !is_of_gang(name); });
  }
  CHECK(gone == kAllFour);
}

TEST_CASE("A gang that fits only when others have gone has the slots kept for it after ten minutes") {
  GangStage stage;
  stage.limits().max_in_flight = 3;
  stage.send_policy();
  stage.node("node-x", 99, 0);
  stage.node("node-free", 99, 99);
  const auto began = stage.now().mono;
  Trickle trickle(stage, break_alone);
  stage.annotate("w-2", kOptOutAnnotation, "true");
  for (int i = 0; i < 9; ++i) (void)trickle.pass();  // until 12:03, when one has gone each 20 s
  stage.annotate("w-2", kOptOutAnnotation, "");
  int alone = 0;
  GangNames gone;
  while (trickle.broken() < 60 && (gone.empty() || !is_of_gang(gone.front()))) {
    gone = trickle.pass();
    alone += gone.empty() ? 0 : 1;
    if (stage.now().mono - began < minutes(11)) CHECK(std::ranges::none_of(gone, is_of_gang));
  }
  CHECK(gone == kAllFour);
  CHECK(alone > 20);  // nobody was kept before
  CHECK(stage.now().mono - began <= minutes(13));
}

TEST_CASE(
    "A gang for which slots are kept comes before all others, whose owners' word is old and who was tried before") {
  GangStage stage;
  stage.limits().max_in_flight = 3;
  stage.send_policy();
  stage.node("node-x", 99, 0);
  stage.node("node-free", 99, 99);
  for (const auto& name : kAllFour) stage.own_by_cluster(name, "train");
  // One of its namespace has suffered longer, and stays.
  stage.pod({.name = "old", .node = "node-x", .device = "gpu-98", .health = Health::Unhealthy});
  stage.annotate("old", kOptOutAnnotation, "true");
  stage.refuse({"w-0"});
  Trickle trickle(stage, break_other);
  while (trickle.broken() < 12) (void)trickle.pass();
  stage.refuse({});
  GangNames gone;
  while (trickle.broken() < 70 && std::ranges::none_of(gone, is_of_gang)) gone = trickle.pass();
  CHECK(gone == kAllFour);
  CHECK(trickle.broken() > 30);
}

TEST_CASE("What a gang that fits needs is kept for it while its owners are read anew") {
  for (const bool of_slots : {false, true}) {
    CAPTURE(of_slots);
    GangStage stage;
    stage.limits().evictions_per_minute = of_slots ? 600 : 4;
    stage.limits().max_in_flight = of_slots ? 4 : 50;
    stage.send_policy();
    stage.node("node-x", 99, 0);
    stage.node("node-free", 99, 99);
    for (const auto& name : kAllFour) stage.own_by_cluster(name, "train");
    REQUIRE(stage.run_until("12:00:30") == kNoneGone);
    stage.limits().paused = true;
    stage.send_policy();
    // Slots are kept from ten minutes on.
    REQUIRE(stage.run_until(of_slots ? "12:13:00" : "12:10:00") == kNoneGone);
    break_alone(stage, 0);
    REQUIRE(stage.run_for(minutes(2)) == kNoneGone);
    const auto reads = stage.reads().size();
    stage.limits().paused = false;
    stage.send_policy();
    auto gone = stage.settle();
    std::ranges::sort(gone);
    CHECK(gone == kAllFour);
    CHECK(stage.reads().size() > reads);  // of owners whose word was old
    if (of_slots) continue;
    CHECK(stage.run_for(Seconds(14)) == kNoneGone);
    CHECK(stage.run_for(Seconds(1)) == GangNames{"alone-0"});
  }
}

TEST_CASE("Slots are kept for a gang for ten minutes, and then for twenty not, whatever hangs in them") {
  GangStage stage;
  stage.limits().max_in_flight = 5;
  stage.send_policy();
  stage.node("node-x", 99, 0);
  stage.node("node-free", 99, 99);
  stage.show_evictions(true);
  auto& hanging = stage.pod({.name = "hang", .node = "node-x", .owner = "ReplicaSet/h", .device = "gpu-98"});
  hanging.grace_period_seconds = 3600;
  stage.upsert_pod("hang");
  stage.annotate("w-2", kOptOutAnnotation, "true");
  stage.report("hang", Health::Unhealthy);
  REQUIRE(stage.run_until("12:01:30") == GangNames{"hang"});
  stage.pod({.name = "w-4", .node = "node-free", .owner = "StatefulSet/w", .device = "gpu-0"});
  stage.mark("w-4", "train");
  stage.annotate("w-2", kOptOutAnnotation, "");
  std::vector<Millis> gone_at;
  const auto opened = stage.now().mono;
  for (int number = 0; number < 40; ++number) {
    break_other(stage, number);
    for (const auto& name : stage.run_for(minutes(1))) {
      CHECK_FALSE(is_of_gang(name));
      stage.remove_pod(name);
      gone_at.push_back(stage.now().mono - opened);
    }
  }
  REQUIRE(!gone_at.empty());
  // Ten minutes and one that it takes to open an incident.
  Millis longest{0};
  for (std::size_t i = 1; i < gone_at.size(); ++i) longest = std::max(longest, gone_at[i] - gone_at[i - 1]);
  CHECK(longest > minutes(8));
  CHECK(longest <= minutes(12));
}

TEST_CASE("Selectors of the policy that do not fit one pod of the gang hold it") {
  GangStage stage;
  stage.policy().match.pods.requirements = {{.key = "app", .op = LabelSelector::Operator::In, .values = {"w"}}};
  stage.pod_named("w-2").meta.labels = {{"app", "other"}};
  stage.upsert_pod("w-2");
  stage.send_policy();
  CHECK(stage.run_until("12:05:00") == kNoneGone);
  CHECK(stage.message("w-0", Reason::GangNotCovered).ends_with("does not fit pod w-2 of gang train"));
}

TEST_CASE("In observe mode a gang would be evicted as one, and nothing is done") {
  GangStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  CHECK(stage.run_until("12:05:00") == kNoneGone);
  CHECK(stage.verdict("w-0", Reason::WouldEvict) != nullptr);
  CHECK(stage.verdict("w-3", Reason::WouldEvict) != nullptr);
}

TEST_CASE("Who has left a gang is still followed for the device that he would have gone for") {
  GangStage stage;
  stage.policy().mode = Mode::Observe;
  stage.send_policy();
  stage.run_until("12:05:00");
  const auto ends = [&] { return stage.controller().losses().ends; };
  REQUIRE(stage.verdict("w-1", Reason::WouldEvict) != nullptr);
  REQUIRE(ends().empty());
  stage.mark("w-1", "");
  stage.settle();
  stage.report("w-0", Health::Healthy);
  stage.run_for(minutes(30));
  const auto known = ends();
  REQUIRE(known.size() == 1);
  CHECK(known.begin()->first.second == PredictionEnd::Recovered);
  CHECK(known.begin()->second == 4);
}

TEST_CASE("Two bad devices in one gang are one move") {
  GangStage stage;
  stage.node("node-2", 4, 3);
  stage.report("w-2", Health::Unhealthy);
  stage.run_until("12:00:30");
  CHECK(stage.run_until("12:03:00") == kAllFour);
  for (const auto& name : kAllFour) CHECK(std::ranges::count(stage.writes(), "evict " + name) == 1);
}

TEST_CASE("A pod that is Pending on a node goes with its gang, one that no node has stays") {
  GangStage stage;
  stage.pod({.name = "pulling", .node = "node-1", .owner = "StatefulSet/w", .phase = k8s::PodPhase::Pending});
  stage.mark("pulling", "train");
  stage.pod({.name = "queued", .node = "", .owner = "StatefulSet/w", .phase = k8s::PodPhase::Pending});
  stage.mark("queued", "train");
  CHECK(stage.run_until("12:02:00") == GangNames{"pulling", "w-0", "w-1", "w-2", "w-3"});
}

TEST_CASE("A mark that is no name is refused in words, and the pod goes alone") {
  GangStage stage;
  stage.mark("w-0", "two words");
  CHECK(stage.run_until("12:00:50") == kNoneGone);
  CHECK(stage.message("w-0", Reason::AnnotationRefused).starts_with("device-health.io/gang has no effect: write"));
  CHECK(stage.run_until("12:02:00") == GangNames{"w-0"});
}

TEST_CASE(
    "The whole gang is told with one deadline, who goes with whom, and it is taken back when the device recovers") {
  GangStage stage;
  stage.policy().evict->notice = NoticeRules{.deadline = minutes(5), .extend_up_to = minutes(10)};
  stage.send_policy();
  CHECK(stage.run_until("12:01:05") == kNoneGone);
  REQUIRE(stage.notice("w-0"));
  CHECK(stage.notice("w-0")->gang == "gang train");
  CHECK(stage.notice("w-0")->with.empty());
  for (const auto* name : {"w-1", "w-2", "w-3"}) {
    REQUIRE(stage.notice(name));
    CHECK(stage.notice(name)->evict);
    CHECK(stage.notice(name)->gang == "gang train");
    CHECK(stage.notice(name)->with == "w-0");
    CHECK(stage.notice(name)->number == 1);
    CHECK(stage.notice(name)->exit_is_safe);
    CHECK(stage.notice(name)->deadline == stage.notice("w-0")->deadline);
    CHECK(our_condition(stage.pod_named(name)) == nullptr);
  }
  SUBCASE("silence: all at the deadline") {
    CHECK(stage.run_until("12:05:59") == kNoneGone);
    CHECK(stage.run_until("12:06:02") == kAllFour);
  }
  SUBCASE("the answer of one does not speak for the others, all together do") {
    stage.annotate("w-0", kNoticeResponseAnnotation, "done");
    CHECK(stage.run_until("12:02:00") == kNoneGone);
    CHECK(stage.message("w-0", Reason::WaitingForCheckpoint).starts_with("pod w-"));
    for (const auto* name : {"w-1", "w-2", "w-3"}) stage.annotate(name, kNoticeResponseAnnotation, "done");
    CHECK(stage.run_until("12:02:05") == kAllFour);
  }
  SUBCASE("an extension of one is the gang's, within extendUpTo") {
    stage.annotate("w-3", kNoticeResponseAnnotation, "extend-until: 2026-11-20T12:30:00Z");
    CHECK(stage.run_until("12:15:59") == kNoneGone);
    CHECK(stage.run_until("12:16:02") == kAllFour);
  }
  SUBCASE("a restart moves no deadline") {
    stage.run_until("12:03:00");
    stage.restart();
    CHECK(stage.run_until("12:05:59") == kNoneGone);
    CHECK(stage.run_until("12:06:30") == kAllFour);
  }
  SUBCASE("recovery") {
    stage.report("w-0", Health::Healthy);
    CHECK(stage.run_until("12:08:00") == kNoneGone);
    CHECK_FALSE(stage.notice("w-0")->evict);
    CHECK_FALSE(stage.notice("w-1"));
  }
}

TEST_CASE("Nobody of a gang is told of an eviction before the pod on the bad device, whose write waits") {
  GangStage stage;
  stage.policy().evict->after = minutes(30);
  stage.send_policy();
  const Error refused{.kind = ErrorKind::Forbidden, .message = "403", .retry_after = {}};
  std::set<std::string> before;
  bool is_told = false;
  for (int second = 0; second < 180; ++second) {
    stage.advance(Seconds(1));
    // Its own write has just been refused, for a minute, when there is something to tell.
    if (second == 90) {
      stage.policy().evict->notice = NoticeRules{.deadline = minutes(5), .extend_up_to = minutes(10)};
      stage.send_policy();
    }
    stage.upsert_pod("w-1");
    std::set<std::string> told;
    for (const auto& action : stage.turn()) {
      const auto* condition = std::get_if<notice::ApplyCondition>(&action);
      const bool is_refused = condition != nullptr && condition->name == "w-0";
      if (condition != nullptr && !condition->notice.empty()) told.insert(condition->name);
      stage.answer(action, is_refused ? Status(std::unexpected(refused)) : Status());
      if (!is_refused) stage.show(action);
    }
    is_told = is_told || told.contains("w-0");
    if (!is_told) before.merge(told);
  }
  CHECK(is_told);
  CHECK(before.empty());
  for (const auto* name : {"w-1", "w-2", "w-3"}) {
    REQUIRE(stage.notice(name));
    CHECK(stage.notice(name)->number == 1);
  }
}

TEST_CASE("The owner hears of a gang by one Event, and the pods that go with another by none") {
  GangStage stage;
  stage.run_until("12:03:00");
  const auto about = [&](std::string_view subject) {
    return std::ranges::count_if(stage.events(), [&](const auto& event) {
      return event.reason == "Evicted" && event.regarding.name == subject;
    });
  };
  CHECK(about("w") == 1);
  CHECK(about("w-0") == 1);
  CHECK(about("w-1") == 0);
  const auto note = std::ranges::find_if(
      stage.events(), [](const auto& event) { return event.reason == "Evicted" && event.regarding.name == "w"; });
  REQUIRE(note != stage.events().end());
  CHECK(note->note.ends_with("; 3 other pods of gang train go with it"));
}

}  // namespace dhc::test
