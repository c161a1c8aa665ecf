#include "domain/history/device_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "domain/cluster/world.h"

namespace dhc {

namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
const MonoTime kMono = MonoTime(hours(100));
constexpr microseconds kTick{1};  // the least that a wall clock shows

Now after_noon(microseconds time) { return {.mono = kMono + std::chrono::floor<Millis>(time), .wall = kNoon + time}; }

Moment moment_after_noon(Millis time) { return {.mono = kMono + time, .wall = kNoon + time}; }

/// A record that is put together by what is known of its incident.
struct Known {
  DeviceKey key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  DeviceHistory past = {};
  IncidentFacts facts = {};
  Acknowledged acknowledged = Acknowledged::No;

  /// As two words that came at these times would have left it.
  void hear_quiet(WallTime since) {
    if (!facts.evidence.quiet_since()) facts.evidence = IncidentEvidence(since);
    facts.evidence.be_quiet_since(since);
  }
  void hear_healthy(Moment since) {
    facts.evidence.take(EvidenceEvent::CalledHealthy, {.mono = since.mono, .wall = since.wall});
  }
  void untaint(WallTime at) { facts.driver_taint = DriverTaint{.gone_at = at}; }
  [[nodiscard]] DeviceRecord record() const {
    return {.key = key,
            .card = {},
            .past = past,
            .incident = Incident::going_on(facts, past.is_lemon, acknowledged),
            .ours = {}};
  }
};

/// Of a device whose incident under policy `p` is going on.
Known open_record() {
  Known known;
  known.past.policy = "p";
  known.past.count = 1;
  known.facts.since = kNoon - hours(1);
  known.facts.opened_at = kNoon - hours(1);
  known.facts.reporter.is_known = true;
  return known;
}

Known quiet_record() {
  auto known = open_record();
  known.hear_quiet(kNoon);
  return known;
}

/// Its driver tainted it, and has taken the taint away at noon.
Known untainted_record() {
  auto known = quiet_record();
  known.untaint(kNoon);
  return known;
}

Known healthy_record() {
  auto known = open_record();
  known.hear_healthy(moment_after_noon(Millis(0)));
  return known;
}

RecoverRules rules_of(bool probation = true) {
  return {.healthy_for = minutes(10), .hold = hours(24), .probation = probation, .half_life = hours(168)};
}

bool is_over(const Known& known, const RecoverRules& rules, microseconds after) {
  return recovery_of(known.record(), &rules, after_noon(after)).over;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("A penalty is negligible from the moment that is foretold, and not before, whatever a damaged state says") {
  const RecoverRules rules;
  DeviceHistory past;
  past.penalty = 1;
  past.penalty_at = kNoon;
  const auto at = negligible_at(past, rules);
  CHECK(is_negligible(past, rules, at));
  CHECK_FALSE(is_negligible(past, rules, at - minutes(1)));
  past.penalty = 0;
  CHECK(negligible_at(past, rules) <= kNoon + Millis(1));
  for (const double damaged :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    past.penalty = damaged;
    CHECK(negligible_at(past, rules) > kNoon);
  }
}

TEST_CASE("A penalty is halved with each half-life") {
  DeviceHistory past;
  past.penalty = 6;
  past.penalty_at = kNoon;
  const auto rules = rules_of();
  CHECK(penalty_of(past, rules, kNoon) == 6);
  CHECK(penalty_of(past, rules, kNoon + hours(168)) == doctest::Approx(3));
  CHECK(penalty_of(past, rules, kNoon + hours(2 * 168)) == doctest::Approx(1.5));
  CHECK(penalty_of(past, rules, kNoon + hours(168) - Millis(1)) > 3);
  CHECK(penalty_of(past, rules, kNoon + hours(84)) == doctest::Approx(6 / std::sqrt(2.0)));
}

TEST_CASE("A penalty grows by no clock that is set back, and lasts no longer than time does") {
  DeviceHistory past;
  past.penalty = 6;
  past.penalty_at = kNoon;
  CHECK(penalty_of(past, rules_of(), kNoon - kTick) == 6);
  CHECK(penalty_of(past, rules_of(), kNoon - hours(24 * 365 * 50)) == 6);
  const WallTime last = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);
  CHECK(penalty_of(past, rules_of(), last) == doctest::Approx(0));
  past.penalty_at = std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
  CHECK(penalty_of(past, rules_of(), last) == 0);
  past.penalty = std::numeric_limits<double>::max();
  CHECK(penalty_of(past, rules_of(), last) == 0);
}

TEST_CASE("An incident that opens adds one to the penalty, and above the limit the device is quarantined for good") {
  auto rules = rules_of();
  rules.quarantine_above = 1.5;
  DeviceHistory past;
  count_incident(past, rules, kNoon);
  CHECK(past.count == 1);
  CHECK(past.penalty == 1);
  CHECK_FALSE(past.is_lemon);
  // Half a point is left: exactly the limit is not above it.
  auto later = past;
  count_incident(later, rules, kNoon + hours(168));
  CHECK(later.penalty == 1.5);
  CHECK_FALSE(later.is_lemon);
  count_incident(past, rules, kNoon + hours(168) - Millis(1));
  CHECK(past.penalty > 1.5);
  CHECK(past.is_lemon);
  count_incident(past, rules, kNoon + hours(168 * 100));
  CHECK(past.is_lemon);
}

TEST_CASE("By the defaults the third incident within nine days of each other quarantines, and the second never does") {
  const RecoverRules defaults;
  const auto after = [&](std::initializer_list<WallTime> times) {
    DeviceHistory past;
    for (const auto time : times) count_incident(past, defaults, time);
    return past.is_lemon;
  };
  CHECK_FALSE(after({kNoon, kNoon}));
  CHECK(after({kNoon, kNoon, kNoon + hours(1)}));
  CHECK(after({kNoon, kNoon + hours(9 * 24), kNoon + hours(18 * 24)}));
  CHECK_FALSE(after({kNoon, kNoon + hours(10 * 24), kNoon + hours(20 * 24)}));
}

TEST_CASE(
    "A device that fails as soon as each hold ends was never above the old limit, and is a lemon the third time") {
  const auto highest = [](const RecoverRules& rules) {
    DeviceHistory past;
    double most = 0;
    for (WallTime time = kNoon; past.count < 50; time += hold_of(past, rules)) {
      count_incident(past, rules, time);
      most = std::max(most, past.penalty);
    }
    return most;
  };
  RecoverRules old;
  old.hold = hours(24);
  old.half_life = hours(168);
  old.quarantine_above = 5;
  CHECK(highest(old) == doctest::Approx(2.73).epsilon(0.01));
  DeviceHistory past;
  WallTime time = kNoon;
  for (const bool quarantined : {false, false, true}) {
    count_incident(past, RecoverRules{}, time);
    CHECK(past.is_lemon == quarantined);
    time += hold_of(past, RecoverRules{});
  }
}

TEST_CASE("A half-life of nothing takes the penalty away at once, and divides by no zero") {
  DeviceHistory past;
  past.penalty = 4;
  past.penalty_at = kNoon;
  RecoverRules rules = rules_of();
  for (const auto half_life : {Millis(0), Millis(-1), Millis(1)}) {
    rules.half_life = half_life;
    CHECK(penalty_of(past, rules, kNoon) == 4);
    CHECK(penalty_of(past, rules, kNoon + Millis(1)) == 2);
    CHECK(penalty_of(past, rules, kNoon + hours(1)) == 0);
  }
}

TEST_CASE("A hold is doubled with each incident after the first, up to seven days") {
  const auto hold = [](std::int64_t incidents) {
    DeviceHistory past;
    past.count = incidents;
    return hold_of(past, rules_of());
  };
  CHECK(hold(0) == hours(24));
  CHECK(hold(1) == hours(24));
  CHECK(hold(2) == hours(48));
  CHECK(hold(3) == hours(96));
  CHECK(hold(4) == hours(168));
  CHECK(hold(5) == hours(168));
  CHECK(hold(std::numeric_limits<std::int64_t>::max()) == hours(168));
  CHECK(hold(std::numeric_limits<std::int64_t>::min()) == hours(24));
}

TEST_CASE("A hold that begins at seven days or above is taken as it is, and not doubled") {
  DeviceHistory past;
  past.count = 9;
  auto rules = rules_of();
  rules.hold = hours(168) - Millis(1);
  CHECK(hold_of(past, rules) == hours(168));
  rules.hold = hours(168);
  CHECK(hold_of(past, rules) == hours(168));
  rules.hold = hours(168) + Millis(1);
  CHECK(hold_of(past, rules) == hours(168) + Millis(1));
  rules.hold = Millis::max();
  CHECK(hold_of(past, rules) == Millis::max());
  rules.hold = Seconds(1);
  past.count = 3;
  CHECK(hold_of(past, rules) == Seconds(4));
}

TEST_CASE("An incident whose device is still reported bad ends by no time") {
  const auto record = open_record();
  const auto recovery = recovery_of(record.record(), nullptr, after_noon(hours(24 * 365)));
  CHECK(!recovery.over);
  for (const bool probation : {true, false}) {
    const auto rules = rules_of(probation);
    const auto waits = recovery_of(record.record(), &rules, after_noon(hours(24 * 365)));
    CHECK(!waits.over);
    CHECK(!waits.at);
    CHECK(waits.why == "it is still reported bad");
  }
}

TEST_CASE("An acknowledged incident ends once nobody has reported the device bad for healthyFor, however it was said") {
  const auto rules = rules_of(false);
  for (const auto how : {Acknowledged::Removed, Acknowledged::Changed, Acknowledged::Annotated}) {
    auto record = open_record();
    record.acknowledged = how;
    const auto bad = recovery_of(record.record(), &rules, after_noon(hours(500)));
    CHECK(!bad.over);
    CHECK(!bad.at);
    record.hear_quiet(kNoon);
    // An operator's word stands above quarantine, and above a reporter that began anew.
    record.past.is_lemon = true;
    record.facts.reporter.began_at = kNoon;
    const auto waits = recovery_of(record.record(), &rules, after_noon(minutes(10) - kTick));
    CHECK(!waits.over);
    CHECK(waits.at == kNoon + minutes(10));
    const auto recovery = recovery_of(record.record(), &rules, after_noon(minutes(10)));
    CHECK(recovery.over);
    CHECK(!recovery.on_probation);
  }
}

TEST_CASE("A record's node is the one that the World knows, else the one that it was last on") {
  DeviceRecord record{
      .key = DeviceKey::dra("gpu.example.com", "pool-1", "gpu-0"), .card = {}, .past = {}, .incident = {}, .ours = {}};
  CHECK(node_of(record, World()).empty());
  record.card.host = "node-b";
  CHECK(node_of(record, World()) == "node-b");
  World world;
  k8s::ResourceSlice slice;
  slice.meta.name = slice.meta.uid = "slice";
  slice.driver = "gpu.example.com";
  slice.pool = "pool-1";
  slice.generation = 1;
  slice.node_name = "node-c";
  slice.devices = {{.name = "gpu-0", .taints = {}}};
  world.apply(k8s::Upsert{std::move(slice)}, after_noon(microseconds(0)));
  world.refresh(after_noon(microseconds(0)));
  CHECK(node_of(record, world) == "node-c");
  record.key = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1");
  CHECK(node_of(record, World()) == "node-a");
}

TEST_CASE("A quarantined device waits for an operator, whatever else speaks for it") {
  const auto rules = rules_of();
  auto record = untainted_record();
  record.hear_healthy(moment_after_noon(Millis(0)));
  record.facts.reporter.booted_at = kNoon;
  REQUIRE(is_over(record, rules, hours(24 * 365)));
  record.past.is_lemon = true;
  const auto recovery = recovery_of(record.record(), &rules, after_noon(hours(24 * 365)));
  CHECK(!recovery.over);
  CHECK(!recovery.at);
  CHECK(recovery.why == "quarantined until an operator acknowledges it");
}

TEST_CASE("Without its policy an incident ends by an operator's word alone, and one without a policy as by default") {
  auto record = untainted_record();
  auto recovery = recovery_of(record.record(), nullptr, after_noon(hours(24 * 365)));
  CHECK(!recovery.over);
  CHECK(!recovery.at);
  record.acknowledged = Acknowledged::Annotated;
  CHECK(!recovery_of(record.record(), nullptr, after_noon(RecoverRules{}.healthy_for - kTick)).over);
  CHECK(recovery_of(record.record(), nullptr, after_noon(RecoverRules{}.healthy_for)).over);
  record = quiet_record();
  record.past.policy.clear();
  CHECK(!recovery_of(record.record(), nullptr, after_noon(RecoverRules{}.hold - kTick)).over);
  recovery = recovery_of(record.record(), nullptr, after_noon(RecoverRules{}.hold));
  CHECK(recovery.over);
  CHECK(recovery.on_probation);
}

TEST_CASE("A driver's own taint that has been gone for healthyFor ends the incident, with Keep too") {
  for (const bool probation : {true, false}) {
    const auto rules = rules_of(probation);
    const auto record = untainted_record();
    const auto waits = recovery_of(record.record(), &rules, after_noon(minutes(10) - kTick));
    CHECK(!waits.over);
    CHECK(waits.at == kNoon + minutes(10));
    const auto recovery = recovery_of(record.record(), &rules, after_noon(minutes(10)));
    CHECK(recovery.over);
    CHECK(!recovery.on_probation);
    CHECK(recovery.why == "its driver's own taint has been gone for 10 min");
  }
}

TEST_CASE("A taint that was never seen, or is not gone, is no evidence") {
  const auto rules = rules_of(false);
  auto record = untainted_record();
  record.facts.driver_taint.reset();
  CHECK(!is_over(record, rules, hours(24 * 365)));
  record = untainted_record();
  record.facts.driver_taint->gone_at.reset();
  CHECK(!is_over(record, rules, hours(24 * 365)));
}

TEST_CASE("A holder that has reported Healthy for healthyFor ends the incident") {
  const auto rules = rules_of(false);
  const auto record = healthy_record();
  const auto waits = recovery_of(record.record(), &rules, after_noon(minutes(10) - Millis(1)));
  CHECK(!waits.over);
  CHECK(waits.at == kNoon + minutes(10));
  const auto recovery = recovery_of(record.record(), &rules, after_noon(minutes(10)));
  CHECK(recovery.over);
  CHECK(!recovery.on_probation);
  CHECK(recovery.why == "a pod that holds it has reported Healthy for 10 min");
}

TEST_CASE("How long a holder has reported Healthy is not read from the wall clock") {
  const auto rules = rules_of(false);
  const auto record = healthy_record();
  Now now = after_noon(minutes(10) - Millis(1));
  now.wall += hours(24);
  CHECK(!recovery_of(record.record(), &rules, now).over);
  CHECK(recovery_of(record.record(), &rules, now).at == now.wall + Millis(1));
  now = after_noon(minutes(10));
  now.wall -= hours(24);
  CHECK(recovery_of(record.record(), &rules, now).over);
}

TEST_CASE("A Healthy or an untainting is no evidence where the reporter or the node has begun anew") {
  auto rules = rules_of();
  rules.hold = hours(48);
  for (auto record : {untainted_record(), healthy_record()}) {
    record.hear_quiet(kNoon);
    REQUIRE(is_over(record, rules, hours(1)));
    record.facts.reporter.name = "driver pod kube-system/gpu-driver-x";
    record.facts.reporter.began_at = kNoon - minutes(1);
    const auto recovery = recovery_of(record.record(), &rules, after_noon(hours(1)));
    CHECK(!recovery.over);
    CHECK(recovery.at == kNoon + hours(48));
    CHECK(has(recovery.why, "driver pod kube-system/gpu-driver-x started at 2026-11-20T11:59:00"));
    record.facts.reporter.began_at.reset();
    record.facts.reporter.booted_at = kNoon;
    rules.probation = false;
    CHECK(!is_over(record, rules, hours(24 * 365)));
    rules.probation = true;
  }
}

TEST_CASE("Of two kinds of evidence the earlier one is waited for and ends the incident") {
  const auto rules = rules_of();
  for (const auto later : {minutes(3), minutes(-3)}) {
    auto record = untainted_record();
    record.untaint(kNoon + later);
    record.hear_healthy(moment_after_noon(Millis(0)));
    const auto first = std::min<microseconds>(later, microseconds(0)) + minutes(10);
    const auto waits = recovery_of(record.record(), &rules, after_noon(first - Millis(1)));
    CHECK(!waits.over);
    CHECK(waits.at == kNoon + first);
    CHECK(has(waits.why, "driver's own taint") == (later < minutes(0)));
    CHECK(is_over(record, rules, first));
  }
}

TEST_CASE("A new boot of the node gives the device back on probation, once it has been quiet since both") {
  const auto rules = rules_of();
  for (const auto quiet_later : {minutes(0), minutes(4), minutes(-4)}) {
    auto record = quiet_record();
    record.facts.reporter.booted_at = kNoon;
    record.hear_quiet(kNoon + quiet_later);
    const auto end = std::max<microseconds>(quiet_later, microseconds(0)) + minutes(10);
    const auto waits = recovery_of(record.record(), &rules, after_noon(end - kTick));
    CHECK(!waits.over);
    CHECK(waits.at == kNoon + end);
    const auto recovery = recovery_of(record.record(), &rules, after_noon(end));
    CHECK(recovery.over);
    CHECK(recovery.on_probation);
  }
}

TEST_CASE("A new boot gives back no device that is not quiet, and one that reads Healthy from when it was") {
  const auto rules = rules_of();
  auto record = open_record();
  record.facts.reporter.booted_at = kNoon - hours(5);
  CHECK(!is_over(record, rules, hours(24 * 365)));
  record.hear_healthy(moment_after_noon(hours(1)));
  const auto recovery = recovery_of(record.record(), &rules, after_noon(hours(1)));
  CHECK(!recovery.over);
  CHECK(recovery.at == kNoon + hours(1) + minutes(10));
}

TEST_CASE("With Keep neither a new boot nor the hold ends the incident") {
  const auto rules = rules_of(false);
  auto record = quiet_record();
  auto recovery = recovery_of(record.record(), &rules, after_noon(hours(24 * 365)));
  CHECK(!recovery.over);
  CHECK(!recovery.at);
  CHECK(recovery.why == "nobody reports on it; then: Keep waits for an operator");
  record.facts.reporter.booted_at = kNoon;
  recovery = recovery_of(record.record(), &rules, after_noon(hours(24 * 365)));
  CHECK(!recovery.over);
  CHECK(!recovery.at);
  CHECK(has(recovery.why, "then: Keep waits for an operator"));
}

TEST_CASE("Without evidence the hold ends the incident on probation, later with each incident") {
  const auto rules = rules_of();
  for (const auto& [incidents, hold] : {std::pair(1, hours(24)), std::pair(2, hours(48)), std::pair(7, hours(168))}) {
    auto record = quiet_record();
    record.past.count = incidents;
    const auto waits = recovery_of(record.record(), &rules, after_noon(hold - kTick));
    CHECK(!waits.over);
    CHECK(waits.at == kNoon + hold);
    const auto recovery = recovery_of(record.record(), &rules, after_noon(hold));
    CHECK(recovery.over);
    CHECK(recovery.on_probation);
  }
}

TEST_CASE("A node that rejects pods is spoken of as a node") {
  const auto rules = rules_of();
  auto record = open_record();
  record.key = DeviceKey::rejecting_node("node-a", "example.com/gpu");
  CHECK(recovery_of(record.record(), &rules, after_noon(minutes(0))).why == "its kubelet still rejects pods");
  record.hear_healthy(moment_after_noon(Millis(0)));
  record.facts.reporter.is_known = false;
  CHECK(recovery_of(record.record(), &rules, after_noon(minutes(1))).why ==
        "a pod that came after the last rejection runs, and must for 10 min");
  CHECK(recovery_of(record.record(), &rules, after_noon(minutes(10))).why ==
        "a pod that came after the last rejection has run for 10 min");
}

TEST_CASE("Where the reporter's pod is not known the evidence says so, and counts") {
  const auto rules = rules_of();
  for (auto record : {untainted_record(), healthy_record()}) {
    CHECK(!has(recovery_of(record.record(), &rules, after_noon(minutes(1))).why, "is not known"));
    record.facts.reporter.is_known = false;
    CHECK(has(recovery_of(record.record(), &rules, after_noon(minutes(1))).why, "its restart would not be seen"));
    CHECK(is_over(record, rules, minutes(10)));
  }
}

TEST_CASE(
    "What was called bad is forgotten by a reporter or a node that began anew, unless an operator vouches for it") {
  auto record = open_record();
  CHECK(!is_forgotten(record.record()));
  CHECK(!why_forgotten(record.record()));
  record.facts.reporter.booted_at = kNoon;
  CHECK(is_forgotten(record.record()));
  CHECK(why_forgotten(record.record()) ==
        "its node has rebooted (seen at 2026-11-20T12:00:00Z): what was known of it may be forgotten");
  record.facts.reporter.name = "driver pod a/b";
  record.facts.reporter.began_at = kNoon - hours(1);
  CHECK(why_forgotten(record.record()) ==
        "driver pod a/b started at 2026-11-20T11:00:00Z and has not reported it bad since: its Healthy is no evidence "
        "of a "
        "repair");
  record.facts.reporter.booted_at.reset();
  CHECK(is_forgotten(record.record()));
  for (const auto how : {Acknowledged::Removed, Acknowledged::Changed, Acknowledged::Annotated}) {
    record.acknowledged = how;
    CHECK(!is_forgotten(record.record()));
    CHECK(!why_forgotten(record.record()));
  }
}

TEST_CASE(
    "The last word is taken back by the first Healthy that is believed, or soon after the driver's taint is gone") {
  auto record = open_record();
  record.facts.called_bad_at = kNoon;
  record.facts.reporter.start = kNoon - hours(2);
  CHECK(last_word_of(record.key, record.facts) == LastWord{.called_bad_at = kNoon, .by_start = kNoon - hours(2)});
  record.facts.called_healthy_at = kNoon + minutes(5);
  CHECK(last_word_of(record.key, record.facts).taken_back_at == kNoon + minutes(5));
  record.facts.driver_taint.emplace();
  CHECK(last_word_of(record.key, record.facts).taken_back_at == kNoon + minutes(5));
  record.untaint(kNoon + minutes(4));
  CHECK(last_word_of(record.key, record.facts).taken_back_at == kNoon + minutes(4) + kDriverSettle);
  record.untaint(kNoon + minutes(5));
  CHECK(last_word_of(record.key, record.facts).taken_back_at == kNoon + minutes(5));
  record.facts.called_healthy_at.reset();
  CHECK(last_word_of(record.key, record.facts).taken_back_at == kNoon + minutes(5) + kDriverSettle);
  record.facts.driver_taint.reset();
  CHECK(!last_word_of(record.key, record.facts).taken_back_at);
}

TEST_CASE("A record is found in its own place alone") {
  DeviceRecords records;
  const auto key = DeviceKey::plugin("node-a", "example.com/gpu", "gpu-0");
  records[key].past.count = 3;
  REQUIRE(find_record(records, key) != nullptr);
  CHECK(find_record(records, key)->past.count == 3);
  CHECK(find_record(records, DeviceKey::dra("example.com/gpu", "node-a", "gpu-0")) == nullptr);
  CHECK(find_record(records, DeviceKey::plugin("node-b", "example.com/gpu", "gpu-0")) == nullptr);
}

}  // namespace dhc
