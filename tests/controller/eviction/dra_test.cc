#include <doctest/doctest.h>

#include "tests/support/core/stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

const std::vector<std::string> kFour = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"};

/// A pod with a claim of its own on gpu-0, which is Unhealthy.
Stage own_claim() {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", kFour);
  stage.claim("train-gpu", {"gpu-0"}, "train-1");
  stage.pod({.name = "train-1",
             .owner = "Job/train",
             .health = Health::Unhealthy,
             .message = "Xid 79",
             .claim = "train-gpu"});
  return stage;
}

/// Two pods that share one standalone claim.
Stage shared_claim() {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", kFour, {"gpu-0"});
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}};
  stage.upsert_claim("both");
  for (const char* name : {"a", "b"}) {
    stage.pod({.name = name, .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  }
  return stage;
}

}  // namespace

TEST_CASE("A DRA pod is not evicted while the scheduler could hand its device straight back") {
  auto stage = own_claim();
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("train-1") == "DeviceStillSchedulable");
  CHECK(stage.has_event("train-1", "DeviceStillSchedulable"));
  stage.slice("node-a", kFour, {"gpu-1"});
  CHECK(stage.run_for(minutes(1)).empty());
  stage.slice("node-a", kFour, {"gpu-0"});
  CHECK(stage.run_for(minutes(1)) == Names{"train-1"});
}

TEST_CASE("A DeviceTaintRule of anybody on the device counts, unless its effect is None or its selector is absent") {
  auto stage = own_claim();
  k8s::DeviceTaintRule rule;
  rule.meta.name = "theirs";
  rule.meta.uid = "uid-theirs";
  rule.has_selector = true;
  rule.driver = kDriver;
  rule.pool = "node-a";
  rule.device = "gpu-0";
  rule.taint = {"x", "", "None"};
  stage.put(rule);
  CHECK(stage.run_for(minutes(3), Seconds(10)).empty());
  rule.taint.effect = "NoSchedule";
  rule.has_selector = false;
  stage.put(rule);
  CHECK(stage.run_for(minutes(3), Seconds(10)).empty());
  rule.has_selector = true;
  rule.device = "gpu-1";
  stage.put(rule);
  CHECK(stage.run_for(minutes(3), Seconds(10)).empty());
  rule.device = "gpu-0";
  stage.put(rule);
  CHECK(stage.run_for(minutes(1)) == Names{"train-1"});
}

TEST_CASE("Taints of an older pool generation do not count") {
  auto stage = own_claim();
  stage.slice("node-a", kFour, {"gpu-0"});
  k8s::ResourceSlice newer;
  newer.meta.name = "slice-new";
  newer.meta.uid = "uid-slice-new";
  newer.driver = kDriver;
  newer.pool = "node-a";
  newer.generation = 2;
  newer.node_name = "node-a";
  newer.devices = {{"gpu-0", {}}, {"gpu-1", {}}};
  stage.put(newer);
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("train-1") == "DeviceStillSchedulable");
}

TEST_CASE("The policy's untainted overrides the wait for a taint") {
  auto stage = own_claim();
  stage.policy().evict->untainted = true;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("The join of container, claim and device is kept when the claim is deleted before the pod") {
  auto stage = own_claim();
  stage.slice("node-a", kFour, {"gpu-0"});
  stage.settle();
  stage.deliver(k8s::Delivery(
      k8s::Remove{.kind = k8s::Kind::ResourceClaim, .ns = "default", .name = "train-gpu", .uid = "uid-train-gpu"}));
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A driver's restart is no recovery and no reason to evict") {
  auto stage = own_claim();
  stage.slice("node-a", kFour, {"gpu-0"});
  stage.pod({.name = "train-2", .owner = "Job/other", .claim = "other-gpu"});
  stage.claim("other-gpu", {"gpu-1"}, "train-2");
  stage.run_for(Seconds(30));
  // Killed: everything Unknown and without words within seconds, the slices vanish after 30 s. Source: seen on 1.37.1.
  stage.report("train-1", Health::Unknown);
  stage.report("train-2", Health::Unknown);
  stage.deliver(k8s::Delivery(
      k8s::Remove{.kind = k8s::Kind::ResourceSlice, .ns = {}, .name = "slice-node-a", .uid = "uid-slice-node-a"}));
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("train-1") == "WaitingWhileUnknown");
  CHECK(stage.reasons("train-2").empty());
  stage.slice("node-a", kFour, {"gpu-0"});
  stage.report("train-2", Health::Healthy);
  stage.report("train-1", Health::Unhealthy, "Xid 79");
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("A shared claim's holders are not evicted by default") {
  auto stage = shared_claim();
  CHECK(stage.run_for(minutes(10), Seconds(10)).empty());
  CHECK(stage.reasons("a") == "SharedClaim");
  CHECK(stage.reasons("b") == "SharedClaim");
}

TEST_CASE("Together evicts all holders of a shared claim in one turn, whatever the limits for one pod are") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.limits().per_node = 1;
  stage.limits().max_in_flight = 1;
  stage.send_policy();
  CHECK(stage.run_for(Seconds(59)).empty());
  stage.advance(Seconds(1));
  CHECK(stage.settle() == Names{"a", "b"});
}

TEST_CASE("Together evicts no more holders of a shared claim than caps.perDay allows, and says what to raise") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.hold_caps();
  stage.limits().cap_per_day = {.percent = 0, .at_least = 1};
  stage.send_policy();
  CHECK(stage.run_for(std::chrono::hours(30), minutes(1)).empty());
  REQUIRE(stage.verdict("a", Reason::CapReached) != nullptr);
  CHECK(stage.verdict("a", Reason::CapReached)->message ==
        "2 pods that share a claim on devices of gpu.example.com would go at once, caps.perDay is 0 percent and at "
        "least 1 of 4 known devices, which is 1 a day: raise it, or evict them yourself");
  stage.limits().cap_per_day.at_least = 2;
  stage.send_policy();
  CHECK(stage.settle() == Names{"a", "b"});
}

TEST_CASE("A shared claim is emptied once for each allocation, then it is pinned") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.send_policy();
  CHECK(stage.run_for(minutes(2)) == Names{"a", "b"});
  // A Deployment's replacements reserve the claim before the old pods are gone: the claim is never deallocated. Source:
  // seen on 1.37.1.
  for (const char* name : {"c", "d"})
    stage.pod({.name = name, .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
  stage.remove_pod("a");
  stage.remove_pod("b");
  auto& claim = stage.claim("both", {"gpu-0"});
  claim.reserved_for = {{"", "pods", "c", "uid-c"}, {"", "pods", "d", "uid-d"}};
  stage.upsert_claim("both");
  CHECK(stage.run_for(minutes(5)).empty());
  CHECK(stage.reasons("c") == "ClaimStillPinned");
}

TEST_CASE("Of a claim that is reserved for a PodGroup nobody is evicted: the group keeps it") {
  for (const bool together : {false, true}) {
    CAPTURE(together);
    auto stage = shared_claim();
    stage.policy().evict->shared_claims_together = together;
    stage.policy().evict->groups_together = together;
    stage.send_policy();
    for (const auto* name : {"a", "b"}) {
      stage.pod_named(name).pod_group = "workers";
      stage.pod_named(name).is_marked = true;
      stage.upsert_pod(name);
    }
    auto& claim = stage.claim("both", {"gpu-0"});
    claim.reserved_for = {{"scheduling.k8s.io", "podgroups", "workers", "uid-workers"}};
    stage.upsert_claim("both");
    CHECK(stage.run_for(minutes(2)).empty());
    REQUIRE(stage.verdict("a", Reason::SharedClaim) != nullptr);
    CHECK(
        stage.verdict("a", Reason::SharedClaim)->message.contains("is reserved for PodGroup workers, which keeps it"));
    // It has gone, and the pods are told by their own names.
    claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}};
    stage.upsert_claim("both");
    CHECK(stage.run_for(minutes(2)) == (together ? Names{"a", "b"} : Names{}));
  }
}

TEST_CASE("A claim that is reserved for what nobody knows is left alone") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.send_policy();
  for (const std::string group : {"scheduling.k8s.io", "example.com", ""}) {
    auto& claim = stage.claim("both", {"gpu-0"});
    claim.reserved_for = {{group, group == "example.com" ? "podgroups" : "workloads", "workers", "uid-workers"}};
    stage.upsert_claim("both");
    CHECK(stage.run_for(minutes(2)).empty());
    REQUIRE(stage.verdict("a", Reason::SharedClaim) != nullptr);
    CHECK(stage.verdict("a", Reason::SharedClaim)->message.starts_with("claim default/both is reserved for "));
  }
}

TEST_CASE("Holders whose evictions were all taken back have not emptied their claim") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.send_policy();
  int asked = 0;
  bool opts_out = false;
  bool joins = false;
  auto error = ErrorKind::Cancelled;
  SUBCASE("one has opted out since") { opts_out = true; }
  SUBCASE("another has come since") { joins = true; }
  SUBCASE("refused, and one has opted out since") {
    opts_out = true;
    error = ErrorKind::Blocked;
  }
  stage.answer_evictions([&](const eviction::EvictPod&) -> Status {
    if (++asked > 2) return {};
    if (asked == 2 && opts_out) {
      stage.pod_named("b").meta.annotations = {{"device-health.io/opt-out", "true"}};
      stage.upsert_pod("b");
    }
    if (asked == 2 && joins) {
      stage.pod({.name = "c", .owner = "Job/train", .health = Health::Unhealthy, .claim = "both"});
      auto& claim = stage.claim("both", {"gpu-0"});
      claim.reserved_for = {{"", "pods", "a", "uid-a"}, {"", "pods", "b", "uid-b"}, {"", "pods", "c", "uid-c"}};
      stage.upsert_claim("both");
    }
    return fail(error, "not sent");
  });
  const auto gone = stage.run_for(minutes(5));
  if (joins) CHECK(gone == Names{"a", "b", "c"});
  if (!opts_out) return;
  CHECK(gone.empty());
  CHECK(asked == 2);
  CHECK(stage.reasons("a") == "OptedOut");
  CHECK(stage.verdict("a", Reason::OptedOut)->message.starts_with("holder b of the shared claim: "));
}

TEST_CASE("A holder whose eviction was taken back is owed it once another has gone or may have") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.send_policy();
  Status first;
  SUBCASE("gone") {}
  SUBCASE("in doubt") { first = fail(ErrorKind::TimedOut, "no answer"); }
  std::vector<std::string> asked;
  stage.answer_evictions([&](const eviction::EvictPod& evict) -> Status {
    asked.push_back(evict.name);
    if (asked.size() == 1) return first;
    return asked.size() == 2 ? Status(fail(ErrorKind::Cancelled, "not sent")) : Status();
  });
  stage.show_evictions(false);
  stage.run_for(Seconds(61));
  CHECK(asked == Names{"a", "b", "b"});
}

TEST_CASE("A holder that no policy covers keeps the whole claim from being emptied") {
  auto stage = shared_claim();
  stage.policy().evict->shared_claims_together = true;
  stage.policy().match.pods.requirements = {{"team", LabelSelector::Operator::Exists, {}}};
  stage.send_policy();
  stage.pod_named("a").meta.labels = {{"team", "x"}};
  stage.upsert_pod("a");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("a") == "SharedClaim");
  CHECK(stage.verdict("a", Reason::SharedClaim)->message ==
        "claim default/both is also held by pod b, which no enforcing policy covers");
}

TEST_CASE("Claim conditions are a signal of their own, binding conditions never are") {
  auto stage = own_claim();
  stage.slice("node-a", kFour, {"gpu-0"});
  stage.report("train-1", Health::Healthy);
  stage.policy().match.claim_conditions = {{"Ready", "False"}};
  stage.send_policy();
  auto& claim = stage.claim("train-gpu", {"gpu-0"}, "train-1");
  claim.devices = {
      {std::string(kDriver), "node-a", "gpu-0", {{"Ready", "False", "LinkDown", "no carrier", stage.now().wall}}}};
  claim.results.front().binding_conditions = {"Ready"};
  stage.upsert_claim("train-gpu");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("train-1") == "NoPolicy");  // of the taint in its slice, which no policy names
  auto& plain = stage.claim("train-gpu", {"gpu-0"}, "train-1");
  plain.devices = {
      {std::string(kDriver), "node-a", "gpu-0", {{"Ready", "False", "LinkDown", "no carrier", stage.now().wall}}}};
  stage.upsert_claim("train-gpu");
  CHECK(stage.run_for(Seconds(59)).empty());
  CHECK(stage.run_for(Seconds(1)) == Names{"train-1"});
}

TEST_CASE("The network data of a device is told with it") {
  auto stage = own_claim();
  auto& claim = stage.claim("train-gpu", {"gpu-0"}, "train-1");
  claim.devices = {{.driver = std::string(kDriver),
                    .pool = "node-a",
                    .device = "gpu-0",
                    .conditions = {},
                    .network = "eth1 10.9.1.2/24 ee:6a:1b:2c:3d:4e"}};
  stage.upsert_claim("train-gpu");
  stage.run_for(Seconds(61));
  REQUIRE_FALSE(stage.conditions().empty());
  CHECK(stage.conditions().front().wanted->message.find("Xid 79; network: eth1 10.9.1.2/24 ee:6a:1b:2c:3d:4e") !=
        std::string::npos);
}

TEST_CASE("An ambiguous device lets its pod be evicted only when every device it may be is kept from the scheduler") {
  Stage stage;
  stage.node("node-a", 0);
  stage.slice("node-a", kFour, {"gpu-0"});
  stage.claim("pair", {"gpu-0", "gpu-1"}, "train-1");
  stage.pod({.name = "train-1", .owner = "Job/train", .claim = "pair"});
  stage.pod_named("train-1").allocated = {
      {"claim:gpu", {{"vendor/x=1", Health::Unhealthy, ""}, {"vendor/x=2", Health::Healthy, ""}}}};
  stage.upsert_pod("train-1");
  CHECK(stage.run_for(minutes(5), Seconds(10)).empty());
  CHECK(stage.reasons("train-1") == "NoPolicy DeviceAmbiguous");  // the first of the taint, which no policy names
  stage.slice("node-a", kFour, {"gpu-0", "gpu-1"});
  CHECK(stage.run_for(minutes(1)) == Names{"train-1"});
}

}  // namespace dhc::test
