// What a process has learned before it could read the state is judged again by that state once it is read: a new
// process that works without it after 30 s, a standby that begins to lead, one that leads again.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/state_text.h"
#include "tests/controller/taint/driver_stage.h"

namespace dhc::test::late_state_test {

using k8s::Health;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr std::string_view kEmptyState = R"({"version":2,"devices":[]})";

void deliver_lists(Stage& stage, bool of_state) {
  for (auto& list : stage.lists()) {
    const bool is_state = std::get<k8s::Snapshot>(list).kind == k8s::Kind::ConfigMap;
    if (is_state == of_state) stage.deliver(std::move(list));
  }
}

/// A new process that cannot see the state ConfigMap yet: it waits for 30 s and goes on without it.
void restart_blind(Stage& stage) {
  stage.controller() = Controller();
  stage.turn();  // what was put before is in the lists
  stage.controller() = Controller();
  deliver_lists(stage, false);
  stage.deliver(EarlierState{std::nullopt});
  stage.send_policy();
  stage.run_for(Seconds(31));
  REQUIRE(stage.verdict(std::string(kIncidentsName), Reason::StateNotRead) != nullptr);
}

/// The watch of the state ConfigMap delivers it at last.
void show_state(Stage& stage) { deliver_lists(stage, true); }

/// Its policy taints and does not evict; the state is kept.
Stage remembering() {
  auto stage = gpu_stage();
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.send_policy();
  return stage;
}

DeviceRecord record_in(const std::string& text, const std::string& device = "gpu-0") {
  for (auto& record : parse_state(text).records) {
    if (record.key.device == device) return record;
  }
  return {};
}

std::string text_of(std::vector<DeviceRecord> records) {
  IncidentStore store;
  store.load(std::move(records), {});
  return state_text(store).text;
}

// ---- rules that the leader removes itself

/// What a leader has written down while its rule stood, when it meant to remove it, and when that was gone: its policy
/// asks for no taint any more, and the incident goes on.
struct Withdrawn {
  k8s::DeviceTaintRule rule;
  std::string stands;
  std::string meant;
  std::string gone;
};

Withdrawn withdrawn_by_a_leader() {
  auto leader = remembering();
  leader.run_for(Seconds(70));
  REQUIRE(leader.rule() != nullptr);
  Withdrawn withdrawn{.rule = *leader.rule(), .stands = leader.state_text(), .meant = {}, .gone = {}};
  leader.policy().taint.reset();
  leader.send_policy();
  for (int second = 0; second < 30; ++second) {
    for (const auto& action : leader.turn()) {
      leader.answer(action);
      leader.show(action);
    }
    if (record_in(leader.state_text()).ours.rule.is_leaving()) withdrawn.meant = leader.state_text();
    leader.advance(Seconds(1));
  }
  withdrawn.gone = leader.state_text();
  REQUIRE(leader.rule() == nullptr);
  REQUIRE_FALSE(withdrawn.meant.empty());
  const auto record = record_in(withdrawn.gone);
  REQUIRE(record.is_open());
  REQUIRE_FALSE(record.is_acknowledged());
  REQUIRE_FALSE(record.ours.rule.stands());
  return withdrawn;
}

/// A standby of the same cluster that has watched for as long as that leader led.
Stage standby_without_taint() {
  auto stage = remembering();
  stage.policy().taint.reset();
  stage.send_policy();
  stage.deliver(Leading{.leads = false});
  stage.run_for(Seconds(71));
  return stage;
}

void check_nobody_has_vouched(const Stage& stage) {
  CHECK(stage.verdict("node-a", Reason::Acknowledged) == nullptr);
  const auto record = record_in(stage.state_text());
  CHECK(record.is_open());
  CHECK_FALSE(record.is_acknowledged());
  CHECK(record.past.penalty > 0);
}

}  // namespace

TEST_CASE("A rule that the leader before us took away itself is nobody's acknowledgement, whenever the state is seen") {
  const auto written = withdrawn_by_a_leader();
  for (const bool stands_first : {true, false}) {
    for (const bool meant_first : {true, false}) {
      for (const bool is_late : {true, false}) {
        CAPTURE(stands_first);
        CAPTURE(meant_first);
        CAPTURE(is_late);
        auto stage = standby_without_taint();
        if (stands_first) stage.put(state_map(written.stands));
        stage.put(written.rule);
        stage.turn();
        if (meant_first) stage.put(state_map(written.meant));
        stage.turn();
        stage.advance(Seconds(1));
        stage.remove(k8s::Kind::DeviceTaintRule, written.rule.meta.name);
        stage.turn();
        stage.advance(Seconds(1));
        if (!is_late) stage.put(state_map(written.gone));
        stage.deliver(Leading{.leads = true});
        stage.turn();
        if (is_late) stage.put(state_map(written.gone));
        stage.run_for(minutes(5), Seconds(5));
        check_nobody_has_vouched(stage);
      }
    }
  }
}

TEST_CASE("A rule of the incident before that the leader took away is nobody's word about the incident that goes on") {
  const auto written = withdrawn_by_a_leader();
  // It began while the rule was on its way out, and never saw it as its own.
  const auto untainted = [](const std::string& text) {
    auto record = record_in(text);
    record.incident.facts()->was_tainted = false;
    return text_of({std::move(record)});
  };
  for (const bool has_led : {false, true}) {
    CAPTURE(has_led);
    auto stage = has_led ? remembering() : standby_without_taint();
    if (has_led) {
      stage.run_for(Seconds(70));
      REQUIRE(stage.rule() != nullptr);
      stage.policy().taint.reset();
      stage.send_policy();
      stage.deliver(Leading{.leads = false});
      stage.turn();
    } else {
      stage.put(written.rule);
    }
    stage.put(state_map(untainted(written.meant)));
    stage.turn();
    stage.advance(Seconds(1));
    stage.remove(k8s::Kind::DeviceTaintRule, written.rule.meta.name);
    stage.turn();
    stage.put(state_map(untainted(written.gone)));
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.run_for(minutes(5), Seconds(5));
    check_nobody_has_vouched(stage);
  }
}

TEST_CASE("What was our own doing by the state is nobody's word by the words that come after it") {
  const auto written = withdrawn_by_a_leader();
  for (const bool has_ended : {false, true}) {
    CAPTURE(has_ended);
    // Another incident of the device goes on, which began while the rule was on its way out.
    auto before = record_in(written.meant);
    auto after = record_in(written.gone);
    before.incident.facts()->was_tainted = false;
    after.incident.facts()->was_tainted = false;
    if (has_ended) before.incident.recover(after.incident.facts()->opened_at, "well");
    auto stage = standby_without_taint();
    stage.put(written.rule);
    stage.put(state_map(text_of({before})));
    stage.turn();
    stage.deliver(Leading{.leads = true});
    stage.turn();
    stage.advance(Seconds(1));
    stage.remove(k8s::Kind::DeviceTaintRule, written.rule.meta.name);
    stage.turn();
    stage.advance(Seconds(1));
    // The leader's last words, before a write of ours was accepted.
    stage.put(state_map(text_of({after})));
    stage.run_for(minutes(5), Seconds(5));
    check_nobody_has_vouched(stage);
  }
}

TEST_CASE("A process that leads again takes its own removal, which another leader has sent, for nobody's word") {
  auto stage = remembering();
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  stage.policy().taint.reset();
  stage.send_policy();
  // It is written down that the rule is to go; then the Lease is lost.
  for (int second = 0; second < 30 && !record_in(stage.state_text()).ours.rule.is_leaving(); ++second) {
    for (const auto& action : stage.turn()) {
      stage.answer(action);
      if (!std::holds_alternative<taint::DeleteRule>(action)) stage.show(action);
    }
    stage.advance(Seconds(1));
  }
  const auto meant = record_in(stage.state_text());
  REQUIRE(meant.ours.rule.is_leaving());
  stage.deliver(Leading{.leads = false});
  stage.turn();
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.turn();
  auto gone = meant;
  gone.ours.rule = {};
  stage.put(state_map(text_of({std::move(gone)})));
  stage.turn();
  stage.advance(Seconds(15));
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(5), Seconds(5));
  check_nobody_has_vouched(stage);
}

TEST_CASE("A rule that an operator removes while the state cannot be read is not made again once it is") {
  auto stage = remembering();
  stage.run_for(Seconds(70));
  REQUIRE(stage.rule() != nullptr);
  // The process before us ended before it had written down that its rule stands.
  auto record = record_in(stage.state_text());
  record.ours.rule = {};
  record.incident.facts()->was_tainted = false;
  stage.put(state_map(text_of({std::move(record)})));
  restart_blind(stage);
  stage.remove(k8s::Kind::DeviceTaintRule, stage.rule()->meta.name);
  stage.run_for(Seconds(20));
  show_state(stage);
  stage.run_for(minutes(5), Seconds(5));
  CHECK(stage.rule() == nullptr);
  CHECK(stage.verdict("node-a", Reason::Acknowledged) != nullptr);
}

TEST_CASE("A card's rule that an operator removes while the state cannot be read is not made again once it is") {
  auto stage = remembering();
  std::vector<k8s::SliceDevice> devices;
  for (const auto& name : kFourGpus) devices.push_back({.name = name, .taints = {}, .counter_set = "card-a"});
  publish(stage, std::move(devices));
  stage.run_for(minutes(2));
  const auto beside = card_rule_name(DeviceKey::dra(kDriver, "node-a", "gpu-1"));
  REQUIRE(stage.rule_called(beside) != nullptr);
  restart_blind(stage);
  stage.remove(k8s::Kind::DeviceTaintRule, beside);
  stage.run_for(Seconds(20));
  show_state(stage);
  stage.run_for(minutes(5), Seconds(5));
  CHECK(stage.rule_called(beside) == nullptr);
  CHECK(stage.rule_called(card_rule_name(DeviceKey::dra(kDriver, "node-a", "gpu-2"))) != nullptr);
}

TEST_CASE("A node's taint that an operator removes while the state cannot be read is not made again once it is") {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().taint = TaintRules{.node = true};
  stage.policy().evict.reset();
  stage.limits().brake_percent = 100;
  stage.send_policy();
  stage.node("node-a", 4, 2);
  for (const std::string number : {"0", "1"})
    stage.pod({.name = "p-" + number, .device = "gpu-" + number, .health = Health::Unhealthy});
  stage.run_for(minutes(2));
  REQUIRE_FALSE(stage.node_named("node-a").taints.empty());
  // The process before us ended before it had written down that its taint stands.
  auto records = parse_state(stage.state_text()).records;
  REQUIRE(records.size() == 2);
  for (auto& record : records) {
    record.ours.node = {};
    record.incident.facts()->was_tainted = false;
  }
  stage.put(state_map(text_of(std::move(records))));
  restart_blind(stage);
  auto node = stage.node_named("node-a");
  node.taints.clear();
  stage.put(node);
  stage.run_for(Seconds(20));
  show_state(stage);
  stage.run_for(minutes(5), Seconds(5));
  CHECK(stage.node_named("node-a").taints.empty());
}

// ---- what the World believes

TEST_CASE("A driver's Healthy after its restart is not believed because the state knows nothing of the incident") {
  auto stage = remembering();
  stage.policy().taint.reset();
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.put(state_map(std::string(kEmptyState)));
  restart_blind(stage);
  stage.run_for(minutes(2));
  REQUIRE_FALSE(stage.controller().stats().incidents.empty());
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(2), Seconds(5));
  REQUIRE(stage.controller().stats().devices_healthy == 0);
  show_state(stage);
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.controller().stats().devices_healthy == 0);
  CHECK_FALSE(stage.controller().stats().incidents.empty());
  CHECK(record_in(stage.state_text()).is_open());
}

TEST_CASE("A process that leads again believes nobody for an incident of its own that was never written down") {
  auto stage = remembering();
  stage.policy().taint.reset();
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  for (int second = 0; second < 70; ++second) {
    for (const auto& action : stage.turn()) {
      if (std::holds_alternative<incident_state::WriteState>(action)) continue;
      stage.answer(action);
      stage.show(action);
    }
    stage.advance(Seconds(1));
  }
  REQUIRE_FALSE(stage.controller().stats().incidents.empty());
  stage.deliver(Leading{.leads = false});
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(1), Seconds(5));
  stage.put(state_map(std::string(kEmptyState)));
  stage.turn();
  stage.deliver(Leading{.leads = true});
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.controller().stats().devices_healthy == 0);
  CHECK(record_in(stage.state_text()).is_open());
}

TEST_CASE("A driver's Healthy after its restart is believed where the state says that the incident has ended") {
  auto stage = remembering();
  stage.policy().taint.reset();
  stage.send_policy();
  put_driver(stage, stage.now().wall - hours(1));
  stage.put(state_map(std::string(kEmptyState)));
  restart_blind(stage);
  stage.run_for(minutes(2));
  put_driver(stage, stage.now().wall);
  stage.report("train-1", Health::Healthy);
  stage.run_for(minutes(1), Seconds(5));
  DeviceRecord record;
  record.key = DeviceKey::dra(std::string(kDriver), "node-a", "gpu-0");
  record.past.policy = "p";
  record.past.count = 1;
  record.past.penalty = 1;
  record.past.penalty_at = stage.now().wall - minutes(2);
  record.incident = Incident::over({.at = stage.now().wall, .why = "a leader has found so"}, std::nullopt);
  stage.put(state_map(text_of({std::move(record)})));
  stage.run_for(minutes(2), Seconds(5));
  CHECK(stage.controller().stats().devices_healthy == 1);
  CHECK(stage.controller().stats().incidents.empty());
}

// ---- the brake

namespace {

/// A node with eight devices, all held; nothing is tainted or evicted.
Stage eight_held() {
  Stage stage;
  stage.whole_policy().own_namespace = "dhc";
  stage.policy().evict.reset();
  stage.limits().brake_trial_after = hours(720);
  stage.send_policy();
  stage.node("node-a", 8);
  for (int i = 0; i < 8; ++i) {
    stage.pod(
        {.name = fmt::format("p-{}", i), .owner = fmt::format("ReplicaSet/{}", i), .device = fmt::format("gpu-{}", i)});
  }
  stage.settle();
  return stage;
}

void break_devices(Stage& stage, int first, int count) {
  for (int i = first; i < first + count; ++i) stage.report(fmt::format("p-{}", i), Health::Unhealthy, "Xid 79");
}

/// Three of them have broken an hour apart, which engages no brake.
Stage three_broken() {
  auto stage = eight_held();
  for (int i = 0; i < 3; ++i) {
    break_devices(stage, i, 1);
    stage.node("node-a", 8, 7 - i);
    stage.run_for(hours(1), minutes(1));
  }
  REQUIRE(stage.verdict("node-a", Reason::BrakeEngaged) == nullptr);
  REQUIRE(parse_state(stage.state_text()).records.size() == 3);
  return stage;
}

std::ptrdiff_t states_written(const Stage& stage) { return std::ranges::count(stage.writes(), "state"); }

bool is_braked(const Stage& stage) { return stage.verdict("node-a", Reason::BrakeEngaged) != nullptr; }

}  // namespace

TEST_CASE("A brake that engaged on what the state knows to have been bad for hours is released when that is read") {
  auto stage = three_broken();
  restart_blind(stage);
  stage.run_for(Seconds(30));
  REQUIRE(is_braked(stage));
  const auto written = states_written(stage);
  show_state(stage);
  stage.run_for(Seconds(10));
  CHECK_FALSE(is_braked(stage));
  CHECK(states_written(stage) > written);
  CHECK_FALSE(stage.state_text().contains("brakes"));
  stage.run_for(minutes(5), Seconds(5));
  CHECK_FALSE(is_braked(stage));
}

TEST_CASE("A standby that leads before it can read the state knows since when it has seen its devices bad itself") {
  const auto written = three_broken().state_text();
  auto stage = eight_held();
  stage.controller() = Controller();
  stage.turn();
  stage.controller() = Controller();
  deliver_lists(stage, false);
  stage.deliver(EarlierState{std::nullopt});
  stage.send_policy();
  stage.deliver(Leading{.leads = false});
  for (int i = 0; i < 3; ++i) {
    break_devices(stage, i, 1);
    stage.node("node-a", 8, 7 - i);
    stage.run_for(hours(1), minutes(1));
  }
  stage.deliver(Leading{.leads = true});
  stage.run_for(Seconds(40));
  REQUIRE(is_braked(stage));
  stage.put(state_map(written));
  show_state(stage);
  stage.run_for(Seconds(10));
  CHECK_FALSE(is_braked(stage));
}

TEST_CASE("Devices that this process has seen well before they broke hold the brake, whatever the state says") {
  auto stage = three_broken();
  for (int i = 0; i < 3; ++i) stage.report(fmt::format("p-{}", i), Health::Healthy);
  stage.node("node-a", 8, 8);
  restart_blind(stage);
  stage.run_for(minutes(1), Seconds(5));
  break_devices(stage, 0, 3);
  stage.node("node-a", 8, 5);
  stage.run_for(minutes(2), Seconds(5));
  REQUIRE(is_braked(stage));
  show_state(stage);
  stage.run_for(minutes(2), Seconds(5));
  CHECK(is_braked(stage));
}

TEST_CASE("A brake that devices have engaged of which the state knows nothing stays engaged, and is written down") {
  for (const bool has_old : {true, false}) {
    CAPTURE(has_old);
    auto stage = has_old ? three_broken() : eight_held();
    if (!has_old) stage.put(state_map(std::string(kEmptyState)));
    restart_blind(stage);
    break_devices(stage, 3, 3);
    stage.node("node-a", 8, has_old ? 2 : 5);
    stage.run_for(minutes(2), Seconds(5));
    REQUIRE(is_braked(stage));
    show_state(stage);
    stage.run_for(minutes(2), Seconds(5));
    CHECK(is_braked(stage));
    CHECK(stage.state_text().contains("brakes"));
  }
}

TEST_CASE("A brake stays that others would have engaged as well, before or after the devices that are old news") {
  for (const bool is_before : {true, false}) {
    CAPTURE(is_before);
    auto stage = three_broken();
    if (is_before) {
      break_devices(stage, 3, 4);
      stage.node("node-a", 8, 1);
    }
    restart_blind(stage);
    stage.run_for(Seconds(10));
    REQUIRE(is_braked(stage));
    if (is_before) {
      // Two of those that have engaged it are well again.
      stage.report("p-3", Health::Healthy);
      stage.report("p-4", Health::Healthy);
      stage.node("node-a", 8, 3);
    } else {
      // It is long ago by then.
      break_devices(stage, 3, 3);
      stage.node("node-a", 8, 2);
    }
    stage.run_for(minutes(is_before ? 1 : 10), Seconds(5));
    REQUIRE(is_braked(stage));
    show_state(stage);
    stage.run_for(minutes(2), Seconds(5));
    CHECK(is_braked(stage));
  }
}

TEST_CASE("A brake of the state and one that engaged before it was read both hold") {
  auto stage = eight_held();
  stage.node("node-b", 8);
  for (int i = 0; i < 8; ++i) {
    stage.pod({.name = fmt::format("b-{}", i),
               .node = "node-b",
               .owner = fmt::format("ReplicaSet/b-{}", i),
               .device = fmt::format("gpu-{}", i)});
  }
  stage.limits().brake_percent = 35;  // six of sixteen are the cluster's
  stage.send_policy();
  break_devices(stage, 0, 3);
  stage.node("node-a", 8, 5);
  stage.run_for(minutes(2), Seconds(5));
  REQUIRE(is_braked(stage));
  REQUIRE(stage.state_text().contains("brakes"));
  restart_blind(stage);
  stage.run_for(minutes(10), Seconds(10));
  for (int i = 0; i < 3; ++i) stage.report(fmt::format("b-{}", i), Health::Unhealthy, "Xid 79");
  stage.node("node-b", 8, 5);
  stage.run_for(minutes(10), Seconds(10));
  REQUIRE(stage.verdict("node-b", Reason::BrakeEngaged) != nullptr);
  show_state(stage);
  stage.run_for(minutes(2), Seconds(5));
  CHECK(is_braked(stage));
  CHECK(stage.verdict("node-b", Reason::BrakeEngaged) != nullptr);
}

TEST_CASE("A brake that the leader before us has released in its last words is none of ours") {
  auto leader = eight_held();
  break_devices(leader, 0, 3);
  leader.node("node-a", 8, 5);
  leader.run_for(minutes(2), Seconds(5));
  REQUIRE(leader.state_text().contains("brakes"));
  for (const bool is_damaged : {false, true}) {
    CAPTURE(is_damaged);
    auto stage = eight_held();
    stage.put(state_map(leader.state_text()));
    stage.restart();
    stage.turn();  // what it would write gets no answer
    REQUIRE(is_braked(stage));
    stage.put(state_map(is_damaged ? "{" : std::string(kEmptyState)));
    stage.turn();
    CHECK(is_braked(stage) == is_damaged);
  }
}

TEST_CASE("A brake of our own stays that a state had as well, and the leader's last words have no more") {
  auto leader = eight_held();
  break_devices(leader, 0, 3);
  leader.node("node-a", 8, 5);
  leader.run_for(minutes(2), Seconds(5));
  auto stage = eight_held();
  stage.put(state_map(leader.state_text()));
  restart_blind(stage);
  break_devices(stage, 3, 3);
  stage.node("node-a", 8, 5);
  stage.run_for(minutes(10), Seconds(10));  // longer than brake.within
  REQUIRE(is_braked(stage));
  show_state(stage);
  stage.turn();
  REQUIRE(is_braked(stage));
  stage.advance(Seconds(1));
  stage.put(state_map(std::string(kEmptyState)));
  stage.turn();
  CHECK(is_braked(stage));
}

TEST_CASE("The brake of the cluster that two nodes' old faults have engaged is released when their brakes are read") {
  for (const bool is_well_between : {false, true}) {
    CAPTURE(is_well_between);
    auto stage = eight_held();
    stage.node("node-b", 8);
    for (int i = 0; i < 8; ++i) {
      stage.pod({.name = fmt::format("b-{}", i),
                 .node = "node-b",
                 .owner = fmt::format("ReplicaSet/b-{}", i),
                 .device = fmt::format("gpu-{}", i)});
    }
    stage.limits().brake_percent = 30;
    stage.send_policy();
    const auto say = [&](Health health) {
      for (const std::string name : {"p", "b"}) {
        for (int i = 0; i < 3; ++i) stage.report(fmt::format("{}-{}", name, i), health, "Xid 79");
      }
      for (const std::string name : {"node-a", "node-b"}) stage.node(name, 8, health == Health::Healthy ? 8 : 5);
    };
    break_devices(stage, 0, 3);
    stage.node("node-a", 8, 5);
    stage.run_for(hours(1), minutes(1));
    for (int i = 0; i < 3; ++i) stage.report(fmt::format("b-{}", i), Health::Unhealthy, "Xid 79");
    stage.node("node-b", 8, 5);
    stage.run_for(minutes(10), Seconds(10));
    const auto is_cluster_braked = [&] { return stage.verdict("example.com/gpu", Reason::BrakeEngaged) != nullptr; };
    REQUIRE(is_braked(stage));
    REQUIRE_FALSE(is_cluster_braked());
    if (is_well_between) say(Health::Healthy);
    restart_blind(stage);
    if (is_well_between) say(Health::Unhealthy);
    stage.run_for(minutes(1), Seconds(5));
    REQUIRE(is_cluster_braked());
    show_state(stage);
    stage.run_for(minutes(2), Seconds(5));
    CHECK(is_braked(stage));
    CHECK(stage.verdict("node-b", Reason::BrakeEngaged) != nullptr);
    CHECK(is_cluster_braked() == is_well_between);
  }
}

// ---- the webhook

namespace {

Stage telling() {
  auto stage = remembering();
  stage.policy().taint.reset();  // a rule tells a new process when its incident opened
  stage.limits().webhook =
      WebhookRules{.url = {.host = "hooks.example.com", .target = "/"}, .secret_file = "/etc/secret"};
  stage.send_policy();
  return stage;
}

/// A second in which no write of the state gets an answer.
void turn_unwritten(Stage& stage) {
  for (const auto& action : stage.turn()) {
    if (!std::holds_alternative<incident_state::WriteState>(action)) stage.answer(action);
  }
  stage.advance(Seconds(1));
}

/// `type incident`, in order.
std::vector<std::string> told_by(Stage& stage) {
  std::vector<std::string> all;
  for (const auto& news : stage.controller().take_news()) {
    const auto data = nlohmann::json::parse(news.data);
    all.push_back(news.type.substr(17) + " " + data.value("incident", std::string()));
  }
  return all;
}

}  // namespace

TEST_CASE("An incident that opened before the state was read is not told where the state knows it by another name") {
  auto stage = telling();
  stage.run_for(Seconds(110));
  const auto before = told_by(stage);
  REQUIRE(before.size() == 1);
  restart_blind(stage);
  stage.run_for(Seconds(10));
  REQUIRE_FALSE(stage.controller().stats().incidents.empty());
  REQUIRE(told_by(stage).empty());
  show_state(stage);
  stage.run_for(minutes(3), Seconds(1));
  CHECK(told_by(stage) == before);
}

TEST_CASE("An incident that was told before the state was read is closed when the state knows another, or none") {
  for (const bool is_known : {true, false}) {
    CAPTURE(is_known);
    auto stage = telling();
    stage.run_for(Seconds(110));
    const auto before = told_by(stage);
    if (!is_known) stage.put(state_map(std::string(kEmptyState)));
    restart_blind(stage);
    stage.run_for(Seconds(40));
    const auto phantom = told_by(stage);
    REQUIRE(phantom.size() == 1);
    REQUIRE(phantom != before);
    // It is well again: nothing else opens.
    if (!is_known) stage.report("train-1", Health::Healthy);
    show_state(stage);
    stage.run_for(minutes(1), Seconds(1));
    const auto told = told_by(stage);
    const auto closed = "incident.closed " + phantom.front().substr(std::string("incident.opened ").size());
    CHECK(std::ranges::count(told, closed) == 1);
    CHECK(std::ranges::count(told, before.front()) == (is_known ? 1 : 0));
    CHECK(told.size() == (is_known ? 2 : 1));
  }
}

TEST_CASE("An end that waits to be written down when the leader's last words come is told all the same") {
  auto leader = telling();
  leader.run_for(Seconds(110));
  auto stage = telling();
  stage.put(state_map(leader.state_text()));
  stage.restart();
  turn_unwritten(stage);
  const auto opened = told_by(stage);
  REQUIRE(opened.size() == 1);
  stage.report("train-1", Health::Healthy);
  for (int second = 0; second < 1200 && !stage.controller().stats().incidents.empty(); ++second) turn_unwritten(stage);
  REQUIRE(stage.controller().stats().incidents.empty());
  REQUIRE(told_by(stage).empty());
  stage.put(state_map(std::string(kEmptyState)));
  for (int second = 0; second < 60; ++second) turn_unwritten(stage);
  CHECK(told_by(stage) ==
        std::vector{"incident.closed " + opened.front().substr(std::string("incident.opened ").size())});
}

TEST_CASE("Of a device that breaks again before anything could be written down, the end of what was told is told") {
  auto leader = telling();
  leader.run_for(Seconds(110));
  auto stage = telling();
  stage.policy().after = Seconds(1);
  stage.policy().recover.healthy_for = Seconds(1);
  stage.send_policy();
  stage.put(state_map(leader.state_text()));
  stage.restart();
  turn_unwritten(stage);
  const auto opened = told_by(stage);
  REQUIRE(opened.size() == 1);
  for (const auto health : {Health::Healthy, Health::Unhealthy, Health::Healthy}) {
    stage.report("train-1", health, "Xid 79");
    const bool ends = health == Health::Healthy;
    for (int second = 0; second < 8 && stage.controller().stats().incidents.empty() != ends; ++second)
      turn_unwritten(stage);
    REQUIRE(stage.controller().stats().incidents.empty() == ends);
  }
  REQUIRE(told_by(stage).empty());
  stage.put(state_map(std::string(kEmptyState)));
  for (int second = 0; second < 60; ++second) turn_unwritten(stage);
  const auto told = told_by(stage);
  CHECK(std::ranges::count(told, "incident.closed " + opened.front().substr(std::string("incident.opened ").size())) ==
        1);
}

// ---- suspects

TEST_CASE("What opened before the state was read speaks against no workload where the state knows it by another name") {
  auto stage = remembering();
  stage.policy().taint.reset();
  stage.send_policy();
  stage.run_for(Seconds(110));
  REQUIRE(stage.state_text().contains("suspects"));
  // The leader has long forgotten who held it when it broke.
  stage.put(state_map(text_of({record_in(stage.state_text())})));
  restart_blind(stage);
  stage.run_for(Seconds(40));
  REQUIRE_FALSE(stage.controller().stats().incidents.empty());
  show_state(stage);
  stage.run_for(minutes(1), Seconds(5));
  CHECK(record_in(stage.state_text()).is_open());
  CHECK_FALSE(stage.state_text().contains("suspects"));
}

}  // namespace dhc::test::late_state_test
