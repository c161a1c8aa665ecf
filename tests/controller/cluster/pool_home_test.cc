// Whose slices a pool is made of: a node may publish slices of its own alone, but under any pool's name.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/incidents/incident_store.h"
#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

using std::chrono::minutes;
using Names = std::vector<std::string>;

namespace {

struct Claimed {
  std::string name = "home";
  std::string node = "node-a";
  std::string pool = "node-a";
  std::int64_t generation = 1;
  std::vector<k8s::Taint> taints = {};
  std::string uuid = "GPU-1";
  std::string device = "gpu-0";
};

constexpr std::string_view kNamedByHardware = "gpu-6e2cba48-2e9c-4c9b-8f5e-0a7c0a5d1f11";

void claim_pool(Stage& stage, const Claimed& what) {
  k8s::ResourceSlice slice;
  slice.meta.name = what.name;
  slice.meta.uid = "uid-" + what.name;
  slice.driver = kDriver;
  slice.pool = what.pool;
  slice.generation = what.generation;
  slice.node_name = what.node;
  slice.devices = {{.name = what.device, .taints = what.taints, .attributes = {{"uuid", what.uuid}}},
                   {.name = "gpu-1", .taints = {}, .attributes = {{"uuid", what.uuid + "1"}}}};
  stage.put(std::move(slice));
}

void hold_in_pool(Stage& stage, const std::string& pool, const std::string& device = "gpu-0") {
  hold_device(stage);
  auto& claim = stage.claim("c", {device}, "train-1");
  claim.results.front().pool = pool;
  stage.upsert_claim("c");
}

/// A pod on node-x that holds gpu-1 of the pool.
void hold_elsewhere(Stage& stage, const std::string& pool) {
  stage.pod({.name = "other-1", .node = "node-x", .health = k8s::Health::Unknown, .claim = "c2"});
  stage.claim("c2", {"gpu-1"}, "other-1").results.front().pool = pool;
  stage.upsert_claim("c2");
}

/// gpu-0 of node-a is tainted by its driver and by us; node-x is there.
Stage incident_at_home(const std::string& pool = "node-a", const std::string& node = "node-a") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  stage.policy().taint = TaintRules{};
  stage.policy().match.device_taints.front().effect = "*";
  stage.policy().evict->after = std::chrono::hours(1);
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  claim_pool(stage, {.node = node, .pool = pool});
  hold_in_pool(stage, pool);
  stage.settle();
  claim_pool(stage, {.node = node, .pool = pool, .taints = {xid("79", "None")}});
  stage.run_for(minutes(2), Seconds(5));
  REQUIRE(stage.rule() != nullptr);
  return stage;
}

/// The node is deleted, with its pod and its slice.
void leave_home(Stage& stage) {
  stage.remove_pod("train-1");
  stage.remove(k8s::Kind::ResourceSlice, "home");
  stage.remove(k8s::Kind::Node, "node-a");
}

/// The node is made anew under its name, with the same card.
void come_back(Stage& stage, const std::string& pool, const std::string& uid) {
  stage.node("node-a", 0);
  auto node = stage.node_named("node-a");
  node.meta.uid = uid;
  stage.put(node);
  claim_pool(stage, {.pool = pool, .taints = {xid("79", "None")}});
}

void check_it_stands(Stage& stage) {
  stage.run_for(minutes(5), Seconds(30));
  CHECK(stage.rule() != nullptr);
  CHECK(std::ranges::count(stage.writes(), "delete gpu-0") == 0);
}

/// A process begins where node-a and another one claim the same pool, and nobody holds anything yet.
Stage contested_at_start(const std::string& liar) {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(stage, {.pool = "rack-1", .taints = {xid("79")}});
  claim_pool(stage, {.name = "rogue", .node = liar, .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  stage.restart();
  return stage;
}

void check_it_goes_on(Stage& stage, const std::string& reason = "WaitingForEvictAfter") {
  CHECK(stage.run_for(minutes(5), Seconds(15)).empty());
  CHECK(stage.rule() != nullptr);
  CHECK(stage.conditions().back().wanted->status);
  CHECK(stage.reasons("train-1").starts_with(reason));
}

/// What the verdict about the pool says; empty: there is none.
std::string said_of_pool(const Stage& stage, const std::string& pool) {
  for (const auto& verdict : stage.verdicts()) {
    if (verdict.reason == Reason::PoolContested && verdict.device == std::string(kDriver) + "/" + pool)
      return verdict.message;
  }
  return {};
}

}  // namespace

TEST_CASE("A slice of another node that shows another card in the pool ends no incident") {
  auto stage = incident_at_home();
  std::string node = "node-x";
  std::int64_t generation = 999;
  SUBCASE("of a later generation") {}
  SUBCASE("of the same one") { generation = 1; }
  SUBCASE("of no node") { node = ""; }
  claim_pool(stage, {.name = "rogue", .node = node, .generation = generation, .uuid = "GPU-2"});
  check_it_goes_on(stage);
  CHECK(std::ranges::count(stage.writes(), "delete gpu-0") == 0);
}

TEST_CASE("A slice of another node that is left alone in the pool ends no incident") {
  auto stage = incident_at_home();
  std::string node = "node-x";
  SUBCASE("of another node") {}
  SUBCASE("of no node") { node = ""; }
  claim_pool(stage, {.name = "rogue", .node = node, .uuid = "GPU-2"});
  stage.settle();
  stage.remove(k8s::Kind::ResourceSlice, "home");  // its driver is away
  check_it_goes_on(stage, "WaitingWhileUnknown");
  SUBCASE("and the watches list afresh") { stage.relist(); }
  SUBCASE("and a new process begins") { stage.restart(); }
  check_it_goes_on(stage, "WaitingWhileUnknown");
  claim_pool(stage, {.taints = {xid("79", "None")}});
  check_it_goes_on(stage);
}

TEST_CASE("In a pool of any name the node of the incident before keeps it over a restart") {
  auto stage = incident_at_home("rack-1");
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  SUBCASE("both slices stand") {
    stage.restart();
    check_it_goes_on(stage);
  }
  SUBCASE("its driver is away") {
    stage.settle();
    stage.remove(k8s::Kind::ResourceSlice, "home");
    stage.settle();
    stage.restart();
    check_it_goes_on(stage, "WaitingWhileUnknown");
    claim_pool(stage, {.pool = "rack-1", .taints = {xid("79", "None")}});
    check_it_goes_on(stage);
  }
}

TEST_CASE("Who comes first has no pool that is named after another node") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(stage, {.name = "rogue", .node = "node-x", .generation = 999});
  stage.settle();
  claim_pool(stage, {.taints = {xid("79")}});
  hold_device(stage);
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("At a start the pods on its devices say whose a pool is") {
  auto stage = contested_at_start("node-x");
  hold_in_pool(stage, "rack-1");
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("Of a pool that several claim at a start none is believed, and that is said, until one of them goes") {
  auto stage = contested_at_start("node-x");
  stage.run_for(minutes(2));
  CHECK(said_of_pool(stage, "rack-1").find("none of their devices' taints and attributes is believed") !=
        std::string::npos);
  stage.remove(k8s::Kind::ResourceSlice, "rogue");
  hold_in_pool(stage, "rack-1");
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
  CHECK(said_of_pool(stage, "rack-1").empty());
}

TEST_CASE("The first pod on a device of a contested pool says whose it is, without a word about slices") {
  auto stage = contested_at_start("node-x");
  stage.run_for(minutes(2));
  hold_in_pool(stage, "rack-1");
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A pod that does not run, or on a node that does not claim the pool, says nothing about it") {
  auto stage = contested_at_start("node-x");
  stage.node("node-z", 0);
  std::string node = "node-z";
  SUBCASE("on another node") {}
  SUBCASE("not running") { node = "node-x"; }
  auto& other = stage.pod({.name = "other-1", .node = node, .health = k8s::Health::Unknown, .claim = "c2"});
  if (node == "node-x") other.phase = k8s::PodPhase::Pending;
  stage.upsert_pod("other-1");
  stage.claim("c2", {"gpu-1"}, "other-1").results.front().pool = "rack-1";
  stage.upsert_claim("c2");
  hold_in_pool(stage, "rack-1");
  CHECK(stage.run_for(minutes(11), Seconds(5)) == Names{"train-1"});
}

TEST_CASE("While the node of an incident's pool is gone, no other node's slice ends the incident") {
  std::string pool = "node-a";
  std::string uuid = "GPU-2";
  SUBCASE("another card") {}
  SUBCASE("the same card") { uuid = "GPU-1"; }
  SUBCASE("a pool of any name") { pool = "rack-1"; }
  auto stage = incident_at_home(pool);
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = pool, .generation = 999, .uuid = uuid});
  stage.settle();
  stage.remove_pod("train-1");
  stage.remove(k8s::Kind::ResourceSlice, "home");
  stage.remove(k8s::Kind::Node, "node-a");
  stage.run_for(minutes(20), Seconds(30));
  CHECK(stage.rule() != nullptr);
  stage.node("node-a", 0);
  claim_pool(stage, {.pool = pool, .taints = {xid("79", "None")}});
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.rule() != nullptr);
  CHECK(std::ranges::count(stage.writes(), "delete gpu-0") == 0);
}

TEST_CASE("While the node of an incident's pool is gone, no other node's slice ends the incident over a restart") {
  std::string pool = "node-a";
  SUBCASE("a pool of its node's name") {}
  SUBCASE("a pool of any name") { pool = "rack-1"; }
  bool is_first = false;
  SUBCASE("the slice comes after the restart") {}
  SUBCASE("the slice is there before it") { is_first = true; }
  auto stage = incident_at_home(pool);
  leave_home(stage);
  stage.run_for(minutes(20), Seconds(30));
  if (is_first) claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = pool, .generation = 999});
  stage.restart();
  stage.run_for(minutes(1));
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = pool, .generation = 999, .uuid = "GPU-2"});
  stage.run_for(minutes(20), Seconds(30));
  CHECK(said_of_pool(stage, pool) == "pool " + pool + " is node-a's: slices of node-x are ignored");
  stage.restart();
  stage.run_for(minutes(20), Seconds(30));
  CHECK(stage.rule() != nullptr);
  come_back(stage, pool, "uid-node-a-2");
  check_it_stands(stage);
  stage.restart();
  check_it_stands(stage);
}

TEST_CASE("Two UIDs of one pool's node are one home where its name is known, and prove nothing where it is not") {
  const auto record = [](const std::string& device, const std::string& uid, std::optional<std::string> host) {
    DeviceRecord made;
    made.key = DeviceKey::dra(std::string(kDriver), "rack-1", device);
    made.card.host_uid = uid;
    made.card.host = std::move(host);
    return made;
  };
  const auto homes_of = [](std::vector<DeviceRecord> records) {
    IncidentStore store;
    store.load(std::move(records), {});
    return store.homes();
  };
  const auto named = homes_of({record("gpu-0", "uid-1", "node-a"), record("gpu-1", "uid-2", std::nullopt)});
  REQUIRE(named.size() == 1);
  CHECK(named.begin()->second.node == "node-a");
  CHECK(homes_of({record("gpu-0", "uid-1", std::nullopt), record("gpu-1", "uid-2", std::nullopt)}).empty());
  CHECK(homes_of({record("gpu-0", "uid-1", "node-a"), record("gpu-1", "uid-1", "node-b")}).empty());
  CHECK(homes_of({record("gpu-0", "uid-1", std::nullopt)}).begin()->second.node_uid == "uid-1");
}

TEST_CASE("Nobody's pool is no node's while an incident of its device is open, also over a restart") {
  auto stage = incident_at_home("fabric", "");
  stage.remove_pod("train-1");
  stage.remove(k8s::Kind::ResourceSlice, "home");
  stage.settle();
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "fabric", .generation = 999, .uuid = "GPU-2"});
  stage.restart();
  stage.run_for(minutes(20), Seconds(30));
  CHECK(said_of_pool(stage, "fabric") == "pool fabric is of no node: slices of node-x are ignored");
  check_it_stands(stage);
}

TEST_CASE("A pool whose node is gone is another node's over a restart, once its device has been away for a day") {
  auto stage = incident_at_home("rack-1");
  leave_home(stage);
  stage.settle();
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  stage.restart();
  stage.run_for(std::chrono::hours(24) - Millis(1), minutes(5));
  CHECK(said_of_pool(stage, "rack-1").starts_with("pool rack-1 is node-a's"));
  stage.restart();
  stage.settle();
  CHECK(said_of_pool(stage, "rack-1").starts_with("pool rack-1 is node-a's"));
  stage.advance(Millis(1));
  stage.run_for(Millis(1));
  CHECK(said_of_pool(stage, "rack-1").empty());
}

TEST_CASE("A state that does not name the pool's node says by its UID whose the pool is, as before") {
  auto stage = incident_at_home("rack-1");
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  stage.settle();
  auto text = stage.state_text();
  const std::string named = R"("host":"node-a",)";
  REQUIRE(text.find(named) != std::string::npos);
  text.erase(text.find(named), named.size());
  stage.put(state_map(text));
  stage.restart();
  check_it_goes_on(stage);
  CHECK(stage.state_text().find(named) != std::string::npos);
}

TEST_CASE("A Healthy of a moment takes no protection from an incident's pool") {
  auto stage = incident_at_home("rack-1");
  stage.report("train-1", k8s::Health::Unhealthy, "Xid 79");
  stage.run_for(minutes(2));
  stage.report("train-1", k8s::Health::Healthy);
  stage.run_for(Seconds(40));
  stage.report("train-1", k8s::Health::Unhealthy, "Xid 79");
  stage.settle();
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  hold_elsewhere(stage, "rack-1");
  stage.remove_pod("train-1");
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("At a start a slice without a node says that a pool is no node's, whatever pods run where") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(stage, {.node = "", .pool = "fabric", .taints = {xid("79")}});
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "fabric", .generation = 999, .uuid = "GPU-2"});
  stage.restart();
  hold_elsewhere(stage, "fabric");
  hold_in_pool(stage, "fabric");
  CHECK(stage.run_for(minutes(11), Seconds(5)) == Names{"train-1"});
  CHECK(said_of_pool(stage, "fabric").find("slices of node-x are ignored") != std::string::npos);
}

TEST_CASE("Thousands of contested pools and nodes make a page of words, and the same one each time") {
  auto stage = silent_driver();
  for (int i = 0; i < 600; ++i) {
    for (int node = 0; node < (i == 0 ? 100 : 2); ++node) {
      claim_pool(stage, {.name = fmt::format("s-{}-{}", i, node),
                         .node = fmt::format("n-{:03}", node),
                         .pool = fmt::format("p-{:03}", i)});
    }
  }
  stage.settle();
  const auto is_contested = [](const Verdict& verdict) { return verdict.reason == Reason::PoolContested; };
  CHECK(std::ranges::count_if(stage.verdicts(), is_contested) == 501);
  CHECK(said_of_pool(stage, "p-000").find("n-001, n-002, n-003, n-004, n-005 and 94 others") != std::string::npos);
  const auto before = stage.verdicts();
  stage.run_for(Seconds(30));
  CHECK(stage.verdicts() == before);
}

TEST_CASE("Pods on several of the nodes that claim a pool say nothing, until only one has any") {
  auto stage = contested_at_start("node-x");
  hold_elsewhere(stage, "rack-1");
  hold_in_pool(stage, "rack-1");
  CHECK(stage.run_for(minutes(2)).empty());
  stage.remove_pod("other-1");
  // gpu-1 is still allocated: no place is known.
  CHECK(stage.run_for(minutes(11), Seconds(5)) == Names{"train-1"});
}

TEST_CASE("A pool that is named after a node is that node's, also while it publishes nothing") {
  auto stage = silent_driver();
  SUBCASE("it is known before the slice") {}
  SUBCASE("it comes after it") { stage.remove(k8s::Kind::Node, "node-a"); }
  stage.node("node-x", 0);
  claim_pool(stage, {.name = "rogue", .node = "node-x", .generation = 999, .taints = {xid("79")}, .uuid = "GPU-2"});
  stage.settle();
  stage.node("node-a", 0);
  hold_device(stage);
  CHECK(stage.run_for(minutes(2)).empty());
  CHECK(stage.conditions().empty());
  CHECK(said_of_pool(stage, "node-a").find("slices of node-x are ignored") != std::string::npos);
  SUBCASE("over a restart") {
    stage.restart();
    CHECK(stage.run_for(minutes(2)).empty());
  }
  claim_pool(stage, {});
  CHECK(stage.run_for(minutes(2)).empty());
  claim_pool(stage, {.taints = {xid("79")}});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A pool without a node that is named like one stays without a node") {
  auto stage = silent_driver();
  claim_pool(stage, {.node = "", .taints = {xid("79")}});
  hold_device(stage);
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A device that is named by its hardware keeps its pool's node over a restart") {
  const std::string device(kNamedByHardware);
  auto stage = silent_driver();
  stage.node("node-x", 0);
  stage.policy().evict->after = std::chrono::hours(1);
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  claim_pool(stage, {.pool = "rack-1", .device = device});
  hold_in_pool(stage, "rack-1", device);
  stage.settle();
  claim_pool(stage, {.pool = "rack-1", .taints = {xid("79")}, .device = device});
  stage.run_for(minutes(2));
  stage.remove_pod("train-1");
  claim_pool(
      stage,
      {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2", .device = device});
  stage.remove(k8s::Kind::ResourceSlice, "home");  // its driver is away
  stage.run_for(minutes(1));
  stage.restart();
  stage.run_for(minutes(1));
  CHECK(said_of_pool(stage, "rack-1").find("slices of node-x are ignored") != std::string::npos);
}

TEST_CASE("The pods on its devices take a pool from a node that was first to claim it") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(
      stage,
      {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .taints = {xid("31")}, .uuid = "GPU-2"});
  stage.run_for(minutes(1));
  claim_pool(stage, {.pool = "rack-1"});
  stage.run_for(minutes(1));
  CHECK(said_of_pool(stage, "rack-1").find("slices of node-a are ignored") != std::string::npos);
  hold_in_pool(stage, "rack-1");
  // What the other one said of the device never counts.
  CHECK(stage.run_for(minutes(2)).empty());
  claim_pool(stage, {.pool = "rack-1", .taints = {xid("79")}});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("Pods elsewhere take no pool from the node of an open incident") {
  auto stage = incident_at_home("rack-1");
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "rack-1", .generation = 999, .uuid = "GPU-2"});
  hold_elsewhere(stage, "rack-1");
  stage.settle();
  stage.remove_pod("train-1");
  stage.run_for(minutes(5), Seconds(10));
  CHECK(stage.rule() != nullptr);
  CHECK(std::ranges::count(stage.writes(), "delete gpu-0") == 0);
}

TEST_CASE("A node that has left its pool for a quarter of an hour no longer has it") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(stage, {.name = "old", .node = "node-x", .pool = "rack-1", .uuid = "GPU-2"});
  stage.settle();
  claim_pool(stage, {.pool = "rack-1"});
  stage.settle();
  stage.remove(k8s::Kind::ResourceSlice, "old");
  stage.run_for(kLongestUnknown - Millis(1));
  CHECK_FALSE(said_of_pool(stage, "rack-1").empty());
  stage.run_for(Millis(2));
  CHECK(said_of_pool(stage, "rack-1").empty());
}

TEST_CASE("A pool is another node's once its own has gone") {
  auto stage = incident_at_home("rack-1");
  stage.node("node-b", 0);
  claim_pool(stage, {.name = "moved", .node = "node-b", .pool = "rack-1", .uuid = "GPU-9"});
  check_it_goes_on(stage);
  stage.remove_pod("train-1");
  stage.remove(k8s::Kind::ResourceSlice, "home");
  stage.remove(k8s::Kind::Node, "node-a");
  // A device that is out of service waits a day for its node.
  stage.run_for(std::chrono::hours(23), minutes(5));
  CHECK(stage.rule() != nullptr);
  stage.run_for(std::chrono::hours(2), minutes(5));
  CHECK(stage.rule() == nullptr);
  stage.policy().evict->after = Seconds(0);
  stage.send_policy();
  stage.pod({.name = "train-2", .node = "node-b", .health = k8s::Health::Unknown, .claim = "c2"});
  stage.claim("c2", {"gpu-0"}, "train-2").results.front().pool = "rack-1";
  stage.upsert_claim("c2");
  claim_pool(stage, {.name = "moved", .node = "node-b", .pool = "rack-1", .taints = {xid("79")}, .uuid = "GPU-9"});
  CHECK(stage.run_for(minutes(2)) == Names{"train-2"});
}

TEST_CASE("A pool of network-attached devices stays one") {
  auto stage = silent_driver();
  stage.node("node-x", 0);
  claim_pool(stage, {.node = "", .pool = "fabric"});
  hold_in_pool(stage, "fabric");
  stage.settle();
  claim_pool(stage, {.name = "rogue", .node = "node-x", .pool = "fabric", .generation = 999, .uuid = "GPU-2"});
  stage.run_for(minutes(1));
  claim_pool(stage, {.node = "", .pool = "fabric", .taints = {xid("79")}});
  CHECK(stage.run_for(minutes(2)) == Names{"train-1"});
}

TEST_CASE("A pool that its node has left to several is nobody's, and no closed incident gives it back over a restart") {
  auto stage = incident_at_home("rack-1");
  stage.remove_pod("train-1");
  claim_pool(stage, {.pool = "rack-1"});
  stage.run_for(std::chrono::hours(1), minutes(1));
  REQUIRE(stage.rule() == nullptr);
  stage.node("node-y", 0);
  stage.remove(k8s::Kind::ResourceSlice, "home");
  for (const auto* node : {"node-x", "node-y"}) {
    claim_pool(stage, {.name = std::string("of-") + node, .node = node, .pool = "rack-1", .uuid = "GPU-2"});
  }
  stage.settle();
  CHECK(said_of_pool(stage, "rack-1").starts_with("pool rack-1 is node-a's"));
  stage.run_for(minutes(20), minutes(1));
  const auto contested = said_of_pool(stage, "rack-1");
  CHECK_FALSE(contested.empty());
  CHECK_FALSE(contested.starts_with("pool rack-1 is node-a's"));
  stage.restart();
  stage.settle();
  CHECK(said_of_pool(stage, "rack-1") == contested);
}

}  // namespace dhc::test
