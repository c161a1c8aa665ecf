#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_text.h"
#include "reconcilers/incident_state/build.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

Stage remembering(Mode mode = Mode::Enforce) {
  auto stage = gpu_stage();
  stage.policy().mode = mode;
  stage.whole_policy().own_namespace = "dhc";
  stage.send_policy();
  return stage;
}

}  // namespace

TEST_CASE("Nothing is decided before the state has been read") {
  auto stage = remembering();
  stage.controller() = Controller();
  for (const auto kind : k8s::kAllKinds) {
    if (kind == k8s::Kind::ConfigMap) continue;
    stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = kind, .objects = {}}));
  }
  stage.turn();
  CHECK(stage.verdicts().empty());
}

TEST_CASE("A restart in any second changes neither what is done nor how often") {
  auto plain = remembering();
  plain.run_for(hours(25), minutes(1));
  const auto expected = deeds(plain);
  for (const int at : {0, 30, 60, 61, 90, 600}) {
    auto stage = remembering();
    stage.run_for(Seconds(at), Seconds(1));
    stage.restart();
    stage.run_for(minutes(11), Seconds(10));
    if (stage.rule() != nullptr) stage.restart();
    stage.run_for(hours(25), minutes(1));
    CAPTURE(at);
    CHECK(deeds(stage) == expected);
  }
}

TEST_CASE("In observe mode the time since the device broke survives a restart, by the state alone") {
  auto stage = remembering(Mode::Observe);
  stage.run_for(Seconds(70));
  CHECK(stage.reasons("train-1") == "WouldEvict");
  stage.restart();
  stage.settle();
  CHECK(stage.reasons("train-1") == "WouldEvict");
  for (const auto& word : stage.writes()) CHECK(word == "state");
}

TEST_CASE("The hold goes on over restarts") {
  auto stage = remembering();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  for (int i = 0; i < 24; ++i) {
    CHECK(stage.rule() != nullptr);
    stage.restart();
    stage.run_for(hours(1), minutes(10));
  }
  CHECK(stage.rule() == nullptr);
}

TEST_CASE("A rule deleted while nobody was watching is an operator's word") {
  auto stage = remembering();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(70));
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.restart();
  stage.run_for(hours(1), minutes(1));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
}

TEST_CASE("A damaged state is reported, rebuilt from what stands in the cluster, and written anew") {
  auto stage = remembering();
  stage.run_for(Seconds(61));
  drop_pod(stage, "train-1", "train-gpu");
  stage.run_for(Seconds(10));
  stage.put(state_map(R"({"version":1,"devices":[{"source":)"));
  stage.restart();
  const auto actions = stage.turn();
  CHECK(stage.verdict("device-health-incidents", Reason::StateDamaged)->message.starts_with("it is not a JSON object"));
  CHECK(stage.reasons("node-a") == "Tainted");
  std::string written;
  for (const auto& action : actions) {
    if (const auto* state = std::get_if<incident_state::WriteState>(&action)) written = state->text;
    stage.answer(action);
  }
  CHECK(parse_state(written).records.size() == 1);
  stage.run_for(Seconds(10));
  CHECK(stage.verdict("device-health-incidents", Reason::StateDamaged) == nullptr);
  CHECK(stage.rule() != nullptr);
}

TEST_CASE("The state is applied with force: whoever has edited the entry must not keep us from rebuilding it") {
  const auto request =
      incident_state::build_state({.ns = "dhs", .name = "device-health-incidents", .text = "{}", .revision = 1});
  REQUIRE(request);
  CHECK(request->target ==
        "/api/v1/namespaces/dhs/configmaps/device-health-incidents?fieldManager=device-health-controller&force=true");
}

TEST_CASE("Nothing is untainted before the end of the incident is written down") {
  auto stage = remembering();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(70));
  stage.report("train-1", Health::Healthy);
  stage.settle();
  for (int i = 0; i < 1200; ++i) {
    for (const auto& action : stage.turn()) {
      const bool state = std::holds_alternative<incident_state::WriteState>(action);
      stage.answer(action, state ? Status(fail(ErrorKind::Unavailable, "no")) : Status());
    }
    stage.advance(Seconds(1));
  }
  CHECK(deeds(stage) == "apply NoSchedule gpu-0");
  CHECK(stage.verdict("node-a", Reason::Untainting)->message ==
        "waits until the end of the incident is written in the state ConfigMap");
  stage.run_for(minutes(3));
  CHECK(deeds(stage) == "apply NoSchedule gpu-0, delete gpu-0");
}

TEST_CASE("Without the state the controller goes on after 30 s, and says so") {
  Controller controller;
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.own_namespace = "dhc";
  std::vector<Message> messages;
  for (const auto kind : k8s::kAllKinds) {
    if (kind != k8s::Kind::ConfigMap) messages.emplace_back(k8s::Delivery(k8s::Snapshot{.kind = kind, .objects = {}}));
  }
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(policy)});
  Now now{.mono = MonoTime(hours(1)), .wall = WallTime(hours(1))};
  const auto turn = controller.turn(messages, now);
  CHECK(turn.wake_at == now.mono + Seconds(30));
  now.mono += Seconds(30) - Millis(1);
  (void)controller.turn({}, now);
  CHECK(controller.verdicts().empty());
  now.mono += Millis(1);
  const auto actions = controller.turn({}, now).actions;
  REQUIRE(controller.verdicts().size() == 1);
  CHECK(controller.verdicts().front().reason == Reason::StateNotRead);
  for (const auto& action : actions) CHECK_FALSE(std::holds_alternative<incident_state::WriteState>(action));
}

TEST_CASE("While the state cannot be read nobody is evicted, however long that lasts") {
  for (const bool is_read : {false, true}) {
    CAPTURE(is_read);
    Stage stage;
    stage.turn();
    stage.controller() = Controller();
    for (const auto kind : k8s::kAllKinds) {
      if (kind == k8s::Kind::ConfigMap && !is_read) continue;
      stage.deliver(k8s::Delivery(k8s::Snapshot{.kind = kind, .objects = {}}));
    }
    if (is_read) stage.deliver(EarlierState{});
    k8s::Namespace ns;
    ns.meta.name = "default";
    stage.put(ns);
    stage.whole_policy().own_namespace = "dhc";
    stage.send_policy();
    stage.node("node-a", 4, 3);
    stage.pod({.name = "web-1", .device = "gpu-0", .health = Health::Unhealthy});
    const auto gone = stage.run_for(hours(3), Seconds(30));
    CHECK(gone == (is_read ? std::vector<std::string>{"web-1"} : std::vector<std::string>{}));
    if (!is_read) CHECK(stage.reasons("web-1") == "WaitingForCharge");
  }
}

TEST_CASE("A state that cannot be written is said, and tried again later and later") {
  auto stage = remembering();
  stage.settle();
  stage.advance(Seconds(60));
  for (int i = 0; i < 300; ++i) {
    for (const auto& action : stage.turn()) {
      const bool state = std::holds_alternative<incident_state::WriteState>(action);
      stage.answer(action, state ? Status(fail(ErrorKind::Forbidden, "configmaps is forbidden")) : Status());
    }
    stage.advance(Seconds(1));
  }
  CHECK(std::ranges::count(stage.writes(), "state") <= 4);
  CHECK(stage.verdict("device-health-incidents", Reason::StateNotSaved) != nullptr);
}

TEST_CASE("Whoever deletes the state wants the past forgotten, not the present") {
  auto stage = remembering();
  stage.policy().evict.reset();
  stage.send_policy();
  stage.run_for(Seconds(61));
  for (int i = 0; i < 3; ++i) {
    stage.run_for(minutes(10), Seconds(30));
    stage.report("train-1", Health::Healthy);
    stage.run_for(Seconds(30));
    stage.report("train-1", Health::Unhealthy, "Xid 79");
    stage.run_for(Seconds(61));
  }
  stage.remove(k8s::Kind::ConfigMap, std::string(kIncidentsName));
  stage.run_for(Seconds(10));
  CHECK(stage.rule() != nullptr);
  const auto content = parse_state(stage.state_text());
  REQUIRE(content.records.size() == 1);
  CHECK(content.records.front().past.count == 1);
}

TEST_CASE("Writing and reading the state changes nothing") {
  IncidentStore incidents;
  DeviceRecord record;
  const WallTime at = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20);
  record.key = DeviceKey::dra("d", "p", "x");
  record.card.value = "GPU-\"1\"\n";
  record.past.policy = "p";
  record.past.incidents = {{at, "Xid 79"}, {at + hours(1), ""}};
  record.past.count = 2;
  record.past.penalty = 1.25;
  record.past.penalty_at = at;
  record.past.is_lemon = true;
  record.past.losses = {{.owner_uid = "o", .at = at, .holders = {"pod-1", "pod-2"}}};
  IncidentFacts facts;
  facts.since = at;
  facts.opened_at = at + minutes(1);
  facts.source = SignalSource::Taint;
  facts.taint = {.key = "gpu.example.com/xid", .value = "79", .effect = "NoSchedule"};
  facts.driver_taint = DriverTaint{.gone_at = at};
  facts.evidence = IncidentEvidence(at);
  facts.absent_since = at;
  record.incident = Incident::going_on(facts, true, Acknowledged::Changed);
  record.ours.rule = {MarkPhase::Leaving, "u"};
  DeviceRecord departed;
  departed.key = DeviceKey::dra("d", "p", "y");
  departed.card.value = "GPU-2";
  departed.incident = Incident::over({.at = at, .why = "so"}, {});
  incidents.load({record}, {departed});
  const auto text = state_text(incidents).text;
  const auto content = parse_state(text);
  CHECK_FALSE(content.damage);
  IncidentStore again;
  again.load(content.records, content.departed);
  CHECK(state_text(again).text == text);
  const auto* read = again.find(record.key);
  REQUIRE(read != nullptr);
  CHECK(read->card.value == record.card.value);
  CHECK(read->incident.phase() == IncidentPhase::Acknowledged);
  CHECK(read->incident.acknowledged() == Acknowledged::Changed);
  CHECK(read->ours.rule.phase() == MarkPhase::Leaving);
  REQUIRE(read->incident.facts() != nullptr);
  CHECK(read->incident.facts()->evidence == facts.evidence);
  CHECK(read->incident.facts()->source == SignalSource::Taint);
  CHECK(read->incident.facts()->taint == facts.taint);
  CHECK(text.contains(R"("phase":"Acknowledged")"));
  REQUIRE(again.find(record.key)->past.losses.size() == 1);
  CHECK(again.find(record.key)->past.losses.front().at == at);
  CHECK(again.find(record.key)->past.losses.front().holders == std::vector<std::string>{"pod-1", "pod-2"});
}

TEST_CASE("A record with losses that are none is damaged, and the others stand") {
  DeviceRecord record;
  record.key = DeviceKey::dra("d", "p", "x");
  record.past.losses = {{.owner_uid = "o", .at = {}, .holders = {"pod-1"}}};
  DeviceRecord other;
  other.key = DeviceKey::dra("d", "p", "y");
  IncidentStore incidents;
  incidents.load({record, other}, {});
  const auto text = state_text(incidents).text;
  REQUIRE_FALSE(parse_state(text).damage);
  for (const auto& [good, bad] : std::vector<std::pair<std::string, std::string>>{
           {R"("holders":["pod-1"])", R"("holders":"pod-1")"},
           {R"("holders":["pod-1"])", R"("holders":[1])"},
           {R"("at":"1970-01-01T00:00:00Z","holders")", R"("at":"yesterday","holders")"},
           {R"("lostBy":[{)", R"("lostBy":[1,{)"}}) {
    CAPTURE(bad);
    auto damaged = text;
    REQUIRE(damaged.find(good) != std::string::npos);
    const auto content = parse_state(damaged.replace(damaged.find(good), good.size(), bad));
    CHECK(content.damage == "1 of 2 devices could not be read");
    CHECK(content.records.size() == 1);
  }
}

TEST_CASE("Names as long as the API lets them in are read back as they were written") {
  for (const std::size_t length : {std::size_t{317}, std::size_t{1024}}) {
    DeviceRecord record;
    record.key = DeviceKey::plugin("node-a", "example.com/" + std::string(length - 12, 'x'), std::string(length, 'i'));
    IncidentStore incidents;
    incidents.load({record}, {});
    const auto content = parse_state(state_text(incidents).text);
    CHECK_FALSE(content.damage);
    REQUIRE(content.records.size() == 1);
    CHECK(content.records[0].key == record.key);
  }
}

TEST_CASE("Where the state is full it keeps what people have said rather than what our taints tell again") {
  const auto device = [](const std::string& name, Acknowledged acknowledged, bool is_lemon) {
    DeviceRecord record;
    record.key = DeviceKey::dra("gpu.example.com", "node-a", name);
    record.past.incidents = {{WallTime(hours(1)), std::string(100, 'x')}};
    record.past.is_lemon = is_lemon;
    if (acknowledged == Acknowledged::No) {
      record.past.penalty = 3;
      record.ours.rule.see("uid-" + name);
    }
    record.incident = Incident::going_on({}, is_lemon, acknowledged);
    return record;
  };
  IncidentStore incidents;
  incidents.load({device("acknowledged", Acknowledged::Removed, false), device("lemon", Acknowledged::No, true),
                  device("tainted-1", Acknowledged::No, false), device("tainted-2", Acknowledged::No, false)},
                 {});
  const auto all = state_text(incidents).text.size();
  const auto written = state_text(incidents, {}, all - 1);
  CHECK(written.left_out == 1);
  const auto two = state_text(incidents, {}, all / 2 + 80);
  REQUIRE(two.left_out == 2);
  const auto content = parse_state(two.text);
  REQUIRE(content.records.size() == 2);
  CHECK(content.records[0].is_acknowledged());
  CHECK(content.records[1].is_quarantined());
}

TEST_CASE("The state never exceeds its limit: the lightest and oldest closed incidents go first") {
  std::vector<DeviceRecord> records;
  for (int i = 0; i < 5000; ++i) {
    DeviceRecord record;
    record.key = DeviceKey::dra("gpu.example.com", "node-" + std::to_string(i), "gpu-0");
    record.past.incidents = {{WallTime(Seconds(i)), std::string(120, 'x')}};
    record.past.penalty = i % 7;
    record.past.penalty_at = WallTime(Seconds(i));
    if (i % 100 == 0) record.incident = Incident::going_on({}, false, Acknowledged::No);
    records.push_back(std::move(record));
  }
  IncidentStore incidents;
  incidents.load(records, {});
  constexpr std::size_t kLimit = 512UL * 1024;
  const auto written = state_text(incidents, {}, kLimit);
  CHECK(written.text.size() <= kLimit);
  CHECK(written.left_out > 0);
  const auto content = parse_state(written.text);
  CHECK_FALSE(content.damage);
  CHECK(content.records.size() + written.left_out == 5000);
  CHECK(std::ranges::count_if(content.records, &DeviceRecord::is_open) == 50);
  double lightest = 7;
  for (const auto& record : content.records) {
    if (!record.is_open()) lightest = std::min(lightest, record.past.penalty);
  }
  CHECK(lightest >= 3);
}

TEST_CASE("Hostile states are damage and nothing else") {
  for (
      const std::string text :
      {"",
       "null",
       "[]",
       "{",
       R"({"version":0,"devices":[]})",
       R"({"version":1})",
       R"({"version":1,"devices":{}})",
       R"({"version":1,"devices":[1,null,[],{}]})",
       R"({"version":1,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","penalty":-1}]})",
       R"({"version":1,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","incidents":1e300}]})",
       R"({"version":1,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","since":"soon"}]})",
       R"({"version":1,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","history":"none"}]})",
       R"({"version":1,"devices":[{"source":"usb","scope":"d","place":"p","device":"x"}]})",
       R"({"version":2})",
       R"({"version":2,"devices":[1,null,[],{}]})",
       R"({"version":2,"devices":[{"source":"usb","scope":"d","place":"p","device":"x"}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p"}]})",
       R"({"version":2,"devices":[{"source":"nodeTaint","scope":"d","place":"p","device":"x"}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","past":{"penalty":-1}}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","past":7}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","incident":{"phase":"Ajar"}}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","incident":{"phase":"Open"}}]})",
       R"({"version":2,"devices":[{"source":"dra","scope":"d","place":"p","device":"x","ours":{"rule":{"phase":"?"}}}]})"}) {
    CAPTURE(text);
    const auto content = parse_state(text);
    CHECK(content.damage);
    CHECK(content.records.empty());
  }
}

}  // namespace dhc::test
