// A report is laid on the device that it speaks of, on no other, and on no other pod.
#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

const std::vector<std::string> kEight = {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"};

/// A node with eight devices, none of them tainted.
Stage eight_devices() {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", kEight);
  return stage;
}

/// A pod whose claim has these devices and whose kubelet says this of them.
void pod_with(Stage& stage, const std::string& name, const std::vector<std::string>& devices,
              std::vector<k8s::ReportedDevice> reports, const std::string& owner = "Job/train") {
  stage.claim("claim-" + name, devices, name).reserved_for = {{"", "pods", name, "uid-" + name}};
  stage.upsert_claim("claim-" + name);
  stage.pod({.name = name, .owner = owner, .claim = "claim-" + name});
  stage.pod_named(name).allocated = {{"claim:gpu", std::move(reports)}};
  stage.upsert_pod(name);
}

/// What the verdict with this reason says about the pod; empty: there is none.
std::string message_of(const Stage& stage, const std::string& pod, std::string_view reason) {
  const auto found = std::ranges::find_if(
      stage.verdicts(), [&](const Verdict& v) { return v.subject.name == pod && to_string(v.reason) == reason; });
  return found == stage.verdicts().end() ? std::string() : found->message;
}

bool has_condition(const Stage& stage, const std::string& pod) {
  return std::ranges::any_of(stage.conditions(),
                             [&](const notice::ApplyCondition& applied) { return applied.name == pod; });
}

}  // namespace

TEST_CASE("The fault of a device that a pod observes by adminAccess is not laid on the device that it holds") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  pod_with(stage, "monitor", {"gpu-0", "gpu-1"},
           {{"vendor.com/gpu=u-gpu-0", Health::Healthy, ""}, {"vendor.com/gpu=u-gpu-1", Health::Unhealthy, "Xid 79"}});
  auto& claim = stage.claim("claim-monitor", {"gpu-0", "gpu-1"}, "monitor");
  claim.results[1].admin_access = true;
  stage.upsert_claim("claim-monitor");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.verdicts().empty());
  CHECK(stage.rule() == nullptr);
  CHECK_FALSE(has_condition(stage, "monitor"));
}

TEST_CASE("A report that may mean a device which the pod only observes moves nothing, and is said") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.send_policy();
  pod_with(stage, "monitor", {"gpu-0", "gpu-1"}, {{"vendor.com/gpu=common", Health::Unhealthy, "Xid 79"}});
  auto& claim = stage.claim("claim-monitor", {"gpu-0", "gpu-1"}, "monitor");
  claim.results[1].admin_access = true;
  stage.upsert_claim("claim-monitor");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK_FALSE(has_condition(stage, "monitor"));
  CHECK(message_of(stage, "monitor", "DeviceAmbiguous") ==
        "the kubelet reports vendor.com/gpu=common Unhealthy for claim default/claim-monitor, which may mean a device "
        "that the pod only observes (adminAccess): nothing is done");
}

// AMD, TPU and the example driver give every device the same first CDI name. Source: their cdi.go.
TEST_CASE("Two pods whose drivers give every device one resource ID share no incident") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  pod_with(stage, "sick", {"gpu-0", "gpu-1"}, {{"k8s.vendor.com/gpu=common", Health::Unhealthy, "ECC"}}, "Job/sick");
  pod_with(stage, "well", {"gpu-2", "gpu-3"}, {{"k8s.vendor.com/gpu=common", Health::Healthy, ""}}, "Job/well");
  CHECK(stage.run_for(minutes(5), Seconds(10)) == Names{"sick"});
  CHECK(stage.reasons("well").find("Evict") == std::string::npos);
  CHECK_FALSE(stage.has_event("well", "DeviceUnhealthy"));
  CHECK_FALSE(has_condition(stage, "well"));
}

TEST_CASE("An owner that lost a pod to one of several devices is not evicted from any of them within the hour") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.send_policy();
  Names gone;
  for (int round = 0; round < 20; ++round) {
    const auto name = "train-" + std::to_string(round);
    // Another claim has another ID, and the scheduler hands the same devices out in another order.
    pod_with(stage, name, round % 2 == 0 ? Names{"gpu-0", "gpu-1"} : Names{"gpu-1", "gpu-2"},
             {{"k8s.vendor.com/gpu=common" + std::to_string(round), Health::Unhealthy, "ECC"}});
    for (auto& evicted : stage.run_for(minutes(2), Seconds(10))) gone.push_back(std::move(evicted));
    if (round + 1 < 20) stage.remove_pod(name);
  }
  CHECK(gone == Names{"train-0"});
  CHECK(stage.reasons("train-19").find("ReplacementOnSameDevice") != std::string::npos);
}

TEST_CASE("Losses to one of several devices are remembered over a restart") {
  auto stage = eight_devices();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict->untainted = true;
  stage.send_policy();
  pod_with(stage, "train-0", {"gpu-0", "gpu-1"}, {{"k8s.vendor.com/gpu=common", Health::Unhealthy, "ECC"}});
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"train-0"});
  stage.remove_pod("train-0");
  stage.run_for(minutes(1));
  stage.restart();
  pod_with(stage, "train-1", {"gpu-1", "gpu-2"}, {{"k8s.vendor.com/gpu=common", Health::Unhealthy, "ECC"}});
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("train-1").find("ReplacementOnSameDevice") != std::string::npos);
}

TEST_CASE("Reports of two requests with one resource ID stay two") {
  auto stage = eight_devices();
  stage.policy().evict.reset();
  stage.send_policy();
  pod_with(stage, "train", {"gpu-0", "gpu-1"}, {});
  auto& claim = stage.claim("claim-train", {"gpu-0", "gpu-1"}, "train");
  claim.results[0].request = "left";
  claim.results[1].request = "right";
  stage.upsert_claim("claim-train");
  stage.pod_named("train").allocated = {{"claim:gpu/left", {{"x=common", Health::Healthy, ""}}},
                                        {"claim:gpu/right", {{"x=common", Health::Unhealthy, "Xid 79"}}}};
  stage.upsert_pod("train");
  stage.run_for(minutes(2), Seconds(10));
  REQUIRE(stage.verdicts().size() == 1);
  CHECK(stage.verdicts().front().device == "gpu.example.com/node-a/gpu-1");
}

TEST_CASE("A full ID that contradicts the allocation waits for the claim's watch, and then means its device") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  pod_with(stage, "train", {"gpu-0"}, {{"gpu.example.com/node-a/gpu-1", Health::Unhealthy, "Xid 79"}});
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.rule() == nullptr);
  CHECK(stage.reasons("train") == "WaitingForClaim");
  CHECK(message_of(stage, "train", "WaitingForClaim") ==
        "the kubelet reports gpu.example.com/node-a/gpu-1 Unhealthy, and claim default/claim-train as known here does "
        "not allocate it: the watch of ResourceClaims is behind");
  stage.claim("claim-train", {"gpu-1"}, "train");
  stage.settle();
  CHECK(stage.run_for(Seconds(59)).empty());
  stage.run_for(Seconds(2));
  REQUIRE(stage.rule() != nullptr);
  CHECK(*stage.rule()->device == "gpu-1");
  CHECK(message_of(stage, "train", "WaitingForClaim").empty());
}

TEST_CASE("A full ID of another request of the claim waits for the claim's watch, and then means its device") {
  auto stage = eight_devices();
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  pod_with(stage, "train", {"gpu-0", "gpu-1"}, {});
  const auto allocate = [&](const std::string& left, const std::string& right) {
    auto& claim = stage.claim("claim-train", {left, right}, "train");
    claim.results[0].request = "left";
    claim.results[1].request = "right";
    stage.upsert_claim("claim-train");
  };
  allocate("gpu-0", "gpu-1");
  stage.pod_named("train").allocated = {
      {"claim:gpu/left", {{"gpu.example.com/node-a/gpu-1", Health::Unhealthy, "Xid 79"}}},
      {"claim:gpu/right", {{"gpu.example.com/node-a/gpu-0", Health::Healthy, ""}}}};
  stage.upsert_pod("train");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.rule() == nullptr);
  CHECK(stage.reasons("train") == "WaitingForClaim");
  CHECK(message_of(stage, "train", "WaitingForClaim") ==
        "the kubelet reports gpu.example.com/node-a/gpu-1 Unhealthy, and claim default/claim-train as known here "
        "allocates it to another request: the watch of ResourceClaims is behind");
  allocate("gpu-1", "gpu-0");
  stage.run_for(Seconds(62));
  REQUIRE(stage.rule() != nullptr);
  CHECK(*stage.rule()->device == "gpu-1");
}

TEST_CASE("A claim that is known as reserved for other pods only lays nothing on its devices") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "before", "uid-before"}};
  stage.upsert_claim("both");
  stage.pod({.name = "after", .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.rule() == nullptr);
  CHECK(stage.reasons("after") == "WaitingForClaim");
  CHECK(message_of(stage, "after", "WaitingForClaim") ==
        "the kubelet reports cdi/gpu=x Unhealthy, and claim default/both as known here is reserved for other pods: the "
        "watch of ResourceClaims is behind");
}

TEST_CASE("A lagging watch of claims untaints nothing") {
  auto stage = eight_devices();
  stage.policy().evict->shared_claims_together = true;
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "before", "uid-before"}};
  stage.upsert_claim("both");
  stage.pod({.name = "before", .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  stage.run_for(minutes(2), Seconds(10));
  REQUIRE(stage.rule() != nullptr);
  stage.remove_pod("before");
  // The claim has been allocated anew, to gpu-1, and only its watch does not say so.
  stage.pod({.name = "after", .owner = "Job/train", .health = Health::Healthy, .claim = "both"});
  stage.run_for(hours(1), minutes(1));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("More reports than the claim has devices are of another allocation") {
  auto stage = eight_devices();
  stage.policy().evict->untainted = true;
  stage.send_policy();
  pod_with(stage, "train", {"gpu-0"}, {{"x=a", Health::Healthy, ""}, {"x=b", Health::Unhealthy, "Xid 79"}});
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("train") == "WaitingForClaim");
}

TEST_CASE("An entry with fewer devices than the claim has is said") {
  auto stage = eight_devices();
  pod_with(stage, "train", {"gpu-0", "gpu-1", "gpu-2"}, {{"x=common", Health::Healthy, ""}});
  stage.settle();
  CHECK(stage.reasons("train") == "ReportIncomplete");
  CHECK(message_of(stage, "train", "ReportIncomplete") ==
        "the kubelet reports 1 of the 3 devices of claim default/claim-train (entry claim:gpu): their driver gives "
        "several the same resourceID, and the health of the others is not known");
  stage.policy().match.drivers = {"other.example.com"};
  stage.send_policy();
  stage.settle();
  CHECK(stage.verdicts().empty());
}

// Seen on a real node: the device was repaired and acknowledged, and the kubelet's first word to the next pod is
// Unknown.
TEST_CASE("An incident does not extend to a pod that has not itself seen Unhealthy") {
  auto stage = eight_devices();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  pod_with(stage, "old", {"gpu-0"}, {{"x=gpu-0", Health::Unhealthy, "Xid 79"}});
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"old"});
  stage.remove_pod("old");
  stage.run_for(minutes(3), Seconds(10));
  SUBCASE("the same process") {}
  SUBCASE("after a restart") { stage.restart(); }
  pod_with(stage, "new", {"gpu-0"}, {{"x=gpu-0", Health::Unknown, ""}}, "Job/other");
  stage.run_for(minutes(30), Seconds(30));
  CHECK(stage.verdicts().size() <= 1);  // of the rule
  CHECK(stage.reasons("new").empty());
  CHECK_FALSE(has_condition(stage, "new"));
  CHECK_FALSE(stage.has_event("new", "DeviceUnhealthy"));
  stage.report("new", Health::Healthy);
  stage.run_for(minutes(30), Seconds(30));
  CHECK_FALSE(stage.has_event("new", "Recovered"));
}

TEST_CASE("A pod that sees Unhealthy itself joins the incident that is open, with its beginning") {
  auto stage = eight_devices();
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  const auto began = stage.now().wall;
  pod_with(stage, "old", {"gpu-0"}, {{"x=gpu-0", Health::Unhealthy, "Xid 79"}});
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"old"});
  stage.remove_pod("old");
  pod_with(stage, "new", {"gpu-0"}, {{"x=gpu-0", Health::Unknown, ""}}, "Job/other");
  stage.run_for(Seconds(5));
  stage.report("new", Health::Unhealthy, "Xid 79");
  stage.settle();
  REQUIRE(has_condition(stage, "new"));
  CHECK(stage.conditions().back().wanted->last_transition == began);
}

TEST_CASE("Of two pods that share a device the one that has not seen Unhealthy gets no condition") {
  auto stage = eight_devices();
  stage.policy().evict->shared_claims_together = true;
  stage.policy().evict->untainted = true;
  stage.send_policy();
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}};
  stage.upsert_claim("both");
  stage.pod({.name = "a", .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  stage.pod({.name = "b", .owner = "Job/train", .health = Health::Unknown, .claim = "both"});
  CHECK(stage.run_for(minutes(3), Seconds(10)).empty());
  CHECK(has_condition(stage, "a"));
  CHECK_FALSE(has_condition(stage, "b"));
  CHECK(message_of(stage, "a", "SharedClaim") ==
        "claim default/both is also held by pod b, which has not reported the device Unhealthy itself");
  stage.report("b", Health::Unhealthy);
  CHECK(stage.run_for(minutes(1)) == Names{"a", "b"});
}

TEST_CASE("A pod about whose shared device nobody reports goes with the holder that reports it") {
  auto stage = eight_devices();
  stage.policy().evict->shared_claims_together = true;
  stage.policy().evict->untainted = true;
  stage.send_policy();
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}};
  stage.upsert_claim("both");
  stage.pod({.name = "a", .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  stage.pod({.name = "b", .owner = "Job/train", .claim = "both"});
  stage.pod_named("b").allocated.clear();  // a sidecar's devices are in no status
  stage.upsert_pod("b");
  CHECK(stage.run_for(minutes(3), Seconds(10)) == Names{"a", "b"});
}

TEST_CASE("The incident of a plugin's device goes on while its pod says Unknown after a restart of ours") {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(minutes(2), Seconds(10));
  const auto since = stage.verdict("a", Reason::NoEvictionConfigured)->since;
  stage.report("a", Health::Unknown);
  stage.run_for(minutes(1));
  stage.restart();
  stage.run_for(Seconds(10));
  REQUIRE_FALSE(stage.verdicts().empty());
  CHECK(stage.verdicts().front().since == since);
  stage.report("a", Health::Unhealthy);
  stage.run_for(Seconds(1));
  CHECK(stage.verdict("a", Reason::NoEvictionConfigured)->since == since);
}

TEST_CASE("A healthy pod of a Job that ends while its device's old incident is open did not die of it") {
  auto stage = eight_devices();
  stage.policy().job_retry = JobRetryRules{};
  stage.policy().taint = TaintRules{.device = TaintRules::Device::NoSchedule};
  stage.send_policy();
  pod_with(stage, "old", {"gpu-0"}, {{"x=gpu-0", Health::Unhealthy, "Xid 79"}}, "Job/first");
  stage.run_for(minutes(3), Seconds(10));
  stage.remove_pod("old");
  pod_with(stage, "new", {"gpu-0"}, {{"x=gpu-0", Health::Unknown, ""}}, "Job/second");
  stage.run_for(Seconds(20));
  stage.pod_named("new").phase = k8s::PodPhase::Failed;
  stage.upsert_pod("new");
  stage.run_for(minutes(2), Seconds(10));
  CHECK_FALSE(stage.has_event("new", "DiedOfDevice"));
  CHECK(stage.job_named("second").backoff_limit == k8s::Job{}.backoff_limit);
}

TEST_CASE("A second of Unhealthy and a day of Unknown are not a minute of Unhealthy") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
  stage.run_for(Seconds(1));
  stage.report("a", Health::Unknown);
  stage.run_for(hours(24), minutes(10));
  CHECK_FALSE(has_condition(stage, "a"));
  stage.report("a", Health::Unhealthy);
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK_FALSE(has_condition(stage, "a"));
  CHECK(stage.run_for(Seconds(2)) == Names{"a"});
}

TEST_CASE("Nothing opens while the device is Unknown, and what was open before stays open") {
  Stage stage;
  stage.policy().evict.reset();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  for (const char* name : {"short", "long"}) {
    stage.pod({.name = name, .device = std::string("gpu-") + name, .health = Health::Unhealthy});
  }
  stage.run_for(Seconds(59));
  stage.report("short", Health::Unknown);
  stage.run_for(Seconds(1));
  stage.report("long", Health::Unknown);
  stage.run_for(hours(2), minutes(1));
  CHECK_FALSE(has_condition(stage, "short"));
  CHECK(has_condition(stage, "long"));
  CHECK(stage.pod_named("long").conditions.size() == 1);
  const auto since = stage.conditions().front().wanted->last_transition;
  stage.report("long", Health::Unhealthy);
  stage.run_for(Seconds(1));
  CHECK(stage.pod_named("long").conditions.front().last_transition == since);
}

TEST_CASE("Unknown bridges two Unhealthy for less than a quarter of an hour, to the millisecond") {
  for (const bool in_time : {true, false}) {
    CAPTURE(in_time);
    Stage stage;
    stage.node("node-a", 4, 3);
    stage.pod({.name = "a", .device = "gpu-0", .health = Health::Unhealthy});
    stage.run_for(Seconds(30));
    stage.report("a", Health::Unknown);
    stage.settle();
    stage.advance(minutes(15) - Millis(in_time ? 1 : 0));
    stage.report("a", Health::Unhealthy);
    stage.settle();
    CHECK(has_condition(stage, "a") == in_time);
  }
}

TEST_CASE("A bare pod made anew on the same device of its node is not evicted again within the hour") {
  Stage stage;
  stage.policy().evict->bare_pods = true;
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "bare", .owner = "", .device = "gpu-0", .health = Health::Unhealthy});
  CHECK(stage.run_for(minutes(2), Seconds(10)) == Names{"bare"});
  auto again = stage.pod_named("bare");
  again.meta.uid = "uid-bare-again";
  again.meta.deletion.reset();
  again.conditions.clear();
  stage.remove_pod("bare");
  stage.run_for(Seconds(5));
  stage.put(again);
  CHECK(stage.run_for(minutes(50), Seconds(10)).empty());
  CHECK(message_of(stage, "bare", "ReplacementOnSameDevice") ==
        "pod default/bare was evicted from node node-a because of this device within the hour and is on it again: not "
        "evicted again");
  CHECK(stage.run_for(minutes(12), Seconds(10)) == Names{"bare"});
}

}  // namespace dhc::test
