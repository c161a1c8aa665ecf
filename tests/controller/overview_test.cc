#include "app/live/overview.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app/verdict_json.h"
#include "domain/contract/names.h"
#include "tests/support/core/stage.h"

using dhc::Seconds;
using dhc::k8s::Health;
using dhc::test::Stage;
using Json = nlohmann::json;

namespace {
Json entry(Stage& stage, const std::string& key) {
  const auto overview = stage.controller().overview(stage.now());
  const auto found = overview.find(key);
  REQUIRE_MESSAGE(found != overview.end(), key);
  return Json::parse(found->second);
}

/// A pod whose plugin's device goes bad under it.
Stage stage_with_bad_device(const std::string& said = "XID 79") {
  Stage stage;
  stage.node("node-a", 4, 3);
  stage.pod({.name = "w", .device = "GPU-1"});
  stage.pod({.name = "well", .device = "GPU-2"});
  stage.turn();
  stage.report("w", Health::Unhealthy, said);
  stage.turn();
  return stage;
}
}  // namespace

TEST_CASE("the overview shows every verdict as /verdicts does, with what its reason means") {
  auto stage = stage_with_bad_device();
  REQUIRE_FALSE(stage.verdicts().empty());
  const auto overview = stage.controller().overview(stage.now());
  std::vector<Json> shown;
  for (const auto& [key, text] : overview) {
    if (key.starts_with("verdict/")) shown.push_back(Json::parse(text));
  }
  REQUIRE(shown.size() == stage.verdicts().size());
  for (const auto& verdict : stage.verdicts()) {
    CHECK(std::ranges::count(shown, Json(dhc::verdict_json(verdict))) == 1);
    CHECK(overview.contains("reason/" + std::string(to_string(verdict.reason))));
  }
  CHECK(entry(stage, "reason/WaitingForWindow")["remedy"] == "Wait, or lower after.");
}

TEST_CASE("an eviction that waits names the gate that holds it, and the gates are listed in their order") {
  auto stage = stage_with_bad_device();
  const auto* verdict = stage.verdict("w", dhc::Reason::WaitingForWindow);
  REQUIRE(verdict != nullptr);
  CHECK(verdict->gate == "window");
  const auto gates = entry(stage, "gates");
  REQUIRE(gates.size() > 20);
  CHECK(gates[0]["name"] == "eviction");
  CHECK(std::ranges::count(gates, Json("window"), [](const Json& gate) { return gate["name"]; }) == 1);
}

TEST_CASE("a node shows the devices that its pods hold, their health and holders, and how many it has") {
  auto stage = stage_with_bad_device();
  const auto node = entry(stage, "node/node-a");
  CHECK(node["name"] == "node-a");
  CHECK_FALSE(node.contains("notReady"));
  const auto& group = node["groups"][0];
  CHECK(group["scope"] == "example.com/gpu");
  CHECK(group["capacity"] == 4);
  CHECK(group["allocatable"] == 3);
  CHECK(group["devices"] == Json::parse(R"([{"id":"GPU-1","health":"Unhealthy","pods":["default/w"]},
                                            {"id":"GPU-2","health":"Healthy","pods":["default/well"]}])"));
}

TEST_CASE("a device that a driver publishes is shown though nobody holds it, with its taint and incident") {
  Stage stage;
  stage.policy().taint = dhc::TaintRules{};
  stage.send_policy();
  stage.slice("node-a", {"gpu-0", "gpu-1"}, {"gpu-1"});
  stage.claim("c", {"gpu-0"}, "w");
  stage.pod({.name = "w", .claim = "c"});
  stage.turn();
  stage.report("w", Health::Unhealthy, "broken");
  stage.run_for(Seconds(120));
  REQUIRE(stage.rule() != nullptr);
  const auto devices = entry(stage, "node/node-a")["groups"][0]["devices"];
  REQUIRE(devices.size() == 2);
  CHECK(devices[0]["incident"] == "open");
  CHECK(devices[0]["taint"] == "ours");
  CHECK(devices[1] == Json::parse(R"({"id":"gpu-1","taint":"driver"})"));
}

TEST_CASE("an incident shows its phase, its steps with their times, and what would end it") {
  auto stage = stage_with_bad_device("XID 79");
  stage.run_for(Seconds(120));
  const auto incident = entry(stage, "incident/node-a/example.com/gpu/GPU-1");
  CHECK(incident["phase"] == "open");
  CHECK(incident["node"] == "node-a");
  CHECK(incident["timeline"][0]["what"] == "the device went bad: XID 79");
  CHECK(incident["timeline"][1]["what"] == "the incident opened");
  CHECK(incident["timeline"][0]["at"] < incident["timeline"][1]["at"]);
  CHECK_FALSE(incident["endsBy"].get<std::string>().empty());
}

TEST_CASE("an entry that says the same is the same text, however much time passes") {
  auto stage = stage_with_bad_device();
  stage.run_for(Seconds(200));
  const auto before = stage.controller().overview(stage.now());
  stage.advance(Seconds(7));
  stage.turn();
  const auto after = stage.controller().overview(stage.now());
  REQUIRE(before.contains("incident/node-a/example.com/gpu/GPU-1"));
  for (const auto& [key, text] : before) {
    CAPTURE(key);
    CHECK(after.contains(key));
    if (after.contains(key)) CHECK(after.at(key) == text);
  }
}

TEST_CASE("an engaged brake is shown with what engaged it and what it waits for") {
  Stage stage;
  stage.node("node-a", 4);
  for (const std::string id : {"1", "2", "3"}) stage.pod({.name = "p" + id, .device = "GPU-" + id});
  stage.turn();
  for (const std::string id : {"1", "2", "3"}) stage.report("p" + id, Health::Unhealthy, "all at once");
  stage.run_for(Seconds(90));
  const auto brake = entry(stage, "brake/example.com/gpu/node-a/devices");
  CHECK(brake["what"].get<std::string>().find("3 of 4 devices") != std::string::npos);
  CHECK(brake["waitsFor"].get<std::string>().find("released") != std::string::npos);
}

TEST_CASE(
    "what others wrote stays what it was, whatever it means elsewhere, and bytes that are no text break nothing") {
  const std::string hostile = "<img src=x onerror=alert(1)>\"\\\n\xff";
  auto stage = stage_with_bad_device(hostile);
  stage.run_for(Seconds(120));
  const auto overview = stage.controller().overview(stage.now());
  for (const auto& [key, text] : overview) {
    CAPTURE(key);
    CHECK(Json::accept(text));
    CHECK(text.find('\n') == std::string::npos);
  }
  const auto incident = entry(stage, "incident/node-a/example.com/gpu/GPU-1");
  CHECK(incident["timeline"][0]["what"].get<std::string>().find("<img src=x onerror=alert(1)>") != std::string::npos);
}

TEST_CASE("a node is busy while a device of it is not healthy, or its incident is open") {
  Stage stage;
  stage.node("node-a", 4);
  stage.node("node-b", 4);
  stage.pod({.name = "w", .device = "GPU-1"});
  stage.turn();
  CHECK(stage.controller().busy_nodes().empty());
  stage.report("w", Health::Unhealthy, "XID 79");
  stage.turn();
  CHECK(stage.controller().busy_nodes() == std::set<std::string>{"node-a"});
  stage.run_for(Seconds(120));
  stage.report("w", Health::Healthy);
  stage.turn();
  REQUIRE(entry(stage, "incident/node-a/example.com/gpu/GPU-1")["phase"] != "past");
  CHECK(stage.controller().busy_nodes() == std::set<std::string>{"node-a"});
}

TEST_CASE("who does not lead shows nothing of the cluster") {
  auto stage = stage_with_bad_device();
  CHECK_FALSE(stage.controller().overview(stage.now()).empty());
  stage.deliver(dhc::Leading{.leads = false});
  stage.turn();
  CHECK(stage.controller().overview(stage.now()).empty());
  CHECK(stage.controller().busy_nodes().empty());
}

TEST_CASE("the limits, the caps in use and the policies are shown") {
  Stage stage;
  stage.hold_caps();
  stage.send_policy();
  stage.node("node-a", 8);
  stage.pod({.name = "w", .device = "GPU-1"});
  stage.turn();
  stage.report("w", Health::Unhealthy, "broken");
  CHECK_FALSE(stage.run_for(Seconds(180)).empty());
  CHECK(entry(stage, "limits")["paused"] == false);
  CHECK(entry(stage, "limits")["maxInFlight"] == 5);
  const auto cap = entry(stage, "cap/example.com/gpu");
  CHECK(cap["out"] == 1);
  CHECK(cap["known"] == 8);
  CHECK(cap["evictedToday"] == 1);
  CHECK(cap["allowedToday"] == 4);
  CHECK(entry(stage, "policies")[0]["effectiveMode"] == "enforce");
}

TEST_CASE("the facts say who leads, why nothing is judged, and when each watch last spoke, to ten seconds") {
  dhc::Facts facts;
  facts.election = dhc::ElectionFact{.holder = "other_1"};
  facts.watches = {
      {.kind = dhc::k8s::Kind::Pod, .listed = true, .problem = {}, .heard_at = dhc::MonoTime(Seconds(95))}};
  const dhc::Now now{.mono = dhc::MonoTime(Seconds(100)), .wall = dhc::WallTime(Seconds(1'000'000'008))};
  auto overview = dhc::overview_of_facts(facts, now);
  const auto controller = Json::parse(overview.at("controller"));
  CHECK(controller["role"] == "standby");
  CHECK(controller["leader"] == "other_1");
  CHECK(controller["silent"].get<std::string>().find("ask the leader, other_1") != std::string::npos);
  CHECK(Json::parse(overview.at("watches"))[0]["heardAt"] == "2001-09-09T01:46:40Z");
  facts.watches[0].heard_at = now.mono;
  CHECK(dhc::overview_of_facts(facts, now) == overview);
}
