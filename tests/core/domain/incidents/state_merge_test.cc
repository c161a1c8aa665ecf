// What 0.1.0 has written while it led after a rollback, beside what we remember.
#include "domain/incidents/state_merge.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace dhc::state_merge_test {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
const DeviceKey kKey = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");

/// One device with one incident, that began then.
DeviceRecord record_of(WallTime began, const std::string& reason = "Xid 79") {
  DeviceRecord record;
  record.key = kKey;
  record.past.policy = "p";
  record.past.count = 1;
  record.past.penalty = 1;
  record.past.penalty_at = began;
  record.past.incidents = {{.at = began, .reason = reason}};
  IncidentFacts facts;
  facts.since = began - minutes(1);
  facts.opened_at = began;
  record.incident = Incident::going_on(facts, false, Acknowledged::No);
  return record;
}

DeviceRecord ended(DeviceRecord record, WallTime at) {
  record.incident.recover(at, "evidence");
  return record;
}

DeviceRecord merged(DeviceRecord ours, std::vector<DeviceRecord> theirs, const Policy& policy = {}) {
  StateContent content;
  content.records = {std::move(ours)};
  StateContent earlier;
  earlier.records = std::move(theirs);
  merge_earlier(content, std::move(earlier), policy);
  REQUIRE(content.records.size() == 1);
  return content.records.front();
}

}  // namespace

TEST_CASE("an incident that 0.1.0 has opened since counts, and adds to what is remembered") {
  const auto ours = ended(record_of(kNoon), kNoon + hours(1));
  auto theirs = record_of(kNoon + hours(5));
  theirs.past.incidents.push_front({.at = kNoon, .reason = "Xid 79"});
  theirs.past.count = 2;
  theirs.ours.rule = {MarkPhase::Stands, "rule-2"};
  const auto record = merged(ours, {theirs});
  CHECK(record.incident.phase() == IncidentPhase::Open);
  CHECK(record.incident.facts()->opened_at == kNoon + hours(5));
  CHECK(record.past.count == 2);
  CHECK(record.past.penalty == doctest::Approx(2).epsilon(0.01));
  CHECK(record.past.incidents.size() == 2);
  CHECK(record.ours.rule.uid() == "rule-2");
}

TEST_CASE("a partition by whose parent 0.1.0 knew it is the same card, and another parent's is another") {
  for (const auto& [parent, count] : {std::pair("GPU-a", 2), std::pair("GPU-b", 1)}) {
    CAPTURE(parent);
    auto ours = ended(record_of(kNoon), kNoon + hours(1));
    ours.card = {.value = "GPU-a/gpu-0", .attribute = "gpu.nvidia.com/parentUUID", .host_uid = {}};
    auto theirs = record_of(kNoon + hours(5));
    theirs.card = {.value = parent, .attribute = "gpu.nvidia.com/parentUUID", .host_uid = {}};
    CHECK(merged(ours, {theirs}).past.count == count);
  }
}

TEST_CASE("what is remembered has decayed by the time of an incident that 0.1.0 has opened") {
  const auto day = hours(24);
  auto ours = ended(record_of(kNoon - 60 * day), kNoon - 59 * day);
  Policy policy;
  policy.policies.push_back({.name = "p"});
  policy.policies.front().recover.half_life = 30 * day;
  auto record = merged(ours, {record_of(kNoon)}, policy);
  CHECK(record.past.penalty == doctest::Approx(1.25));
  CHECK(record.past.penalty_at == kNoon);
  policy.policies.front().recover.half_life = 60 * day;
  CHECK(merged(ours, {record_of(kNoon)}, policy).past.penalty == doctest::Approx(1.5));
  // What ours says is of a later time than the incident: a part of it was taken back since.
  ours.past.penalty_at = kNoon + 60 * day;
  record = merged(ours, {record_of(kNoon)}, policy);
  CHECK(record.past.penalty == doctest::Approx(1.5));
  CHECK(record.past.penalty_at == kNoon + 60 * day);
  // Of a policy that is gone nobody knows: the default.
  ours.past.penalty_at = kNoon - 2 * RecoverRules().half_life;
  CHECK(merged(ours, {record_of(kNoon)}).past.penalty == doctest::Approx(1.25));
}

TEST_CASE("an incident that 0.1.0 has ended is over, and one that it never saw goes on") {
  const auto over = merged(record_of(kNoon), {ended(record_of(kNoon), kNoon + hours(2))});
  CHECK(over.incident.phase() == IncidentPhase::Ended);
  CHECK(over.past.count == 1);
  // Ours is a later one, of which 0.1.0 knows nothing: the end is that of the one before.
  const auto later = merged(record_of(kNoon + hours(1)), {ended(record_of(kNoon), kNoon + hours(2))});
  CHECK(later.incident.phase() == IncidentPhase::Open);
  CHECK(merged(record_of(kNoon), {}).incident.phase() == IncidentPhase::Open);
}

TEST_CASE("what 0.1.0 has not written since changes nothing, however often it is read") {
  const auto theirs = record_of(kNoon);
  for (const auto& ours : {record_of(kNoon), ended(record_of(kNoon), kNoon + hours(1)), record_of(kNoon + hours(3))}) {
    const auto once = merged(ours, {theirs});
    const auto twice = merged(once, {theirs});
    CHECK(once.incident.phase() == ours.incident.phase());
    CHECK(twice.incident.phase() == ours.incident.phase());
    CHECK(twice.past.count == ours.past.count);
    CHECK(twice.past.penalty == ours.past.penalty);
  }
}

TEST_CASE("what 0.1.0 has read off a rule of ours whose name it does not know ends no incident and acknowledges none") {
  const std::string adopted = "adopted from DeviceTaintRule dhc-node-a-gpu-0-x";
  auto vouched = record_of(kNoon + minutes(1), adopted);
  REQUIRE(acknowledge(vouched, Acknowledged::Removed));
  for (const auto& theirs : {vouched, ended(vouched, kNoon + hours(1))}) {
    const auto record = merged(record_of(kNoon), {theirs});
    CHECK(record.incident.phase() == IncidentPhase::Open);
    CHECK(record.past.penalty == 1);
  }
  StateContent none;
  StateContent earlier;
  earlier.records = {vouched};
  merge_earlier(none, std::move(earlier), {});
  CHECK(none.records.empty());
}

TEST_CASE("an acknowledgement that 0.1.0 has seen of the same incident counts, and pays the penalty") {
  auto theirs = record_of(kNoon);
  REQUIRE(acknowledge(theirs, Acknowledged::Annotated));
  auto ours = record_of(kNoon);
  ours.past.is_lemon = true;
  ours.incident = Incident::going_on(*ours.incident.facts(), true, Acknowledged::No);
  const auto record = merged(ours, {theirs});
  CHECK(record.incident.phase() == IncidentPhase::Acknowledged);
  CHECK(record.past.penalty == 0);
  CHECK_FALSE(record.past.is_lemon);
}

TEST_CASE("a quarantine that an operator has ended under us does not come back with an old state") {
  auto theirs = record_of(kNoon);
  theirs.past.is_lemon = true;
  theirs.incident = Incident::going_on(*theirs.incident.facts(), true, Acknowledged::No);
  auto ours = record_of(kNoon);
  REQUIRE(acknowledge(ours, Acknowledged::Annotated));
  const auto record = merged(ours, {theirs});
  CHECK(record.incident.phase() == IncidentPhase::Acknowledged);
  CHECK_FALSE(record.past.is_lemon);
}

TEST_CASE(
    "what stood of ours for an incident that goes on is nobody's word if it is gone, and stays for one that is over") {
  auto ours = record_of(kNoon);
  ours.ours.rule = {MarkPhase::Stands, "rule-1"};
  ours.ours.node = {MarkPhase::Stands, "node-1"};
  auto record = merged(ours, {});
  CHECK_FALSE(record.ours.any());
  record = merged(ended(ours, kNoon + hours(1)), {});
  CHECK(record.ours.rule.stands());
  auto theirs = record_of(kNoon);
  theirs.ours.rule = {MarkPhase::Leaving, "rule-1"};
  CHECK(merged(ours, {theirs}).ours.rule.phase() == MarkPhase::Leaving);
}

TEST_CASE("losses of both count, the later one of an owner, whatever became of the incident") {
  auto ours = record_of(kNoon);
  ours.past.losses = {{.owner_uid = "a", .at = kNoon, .holders = {"1"}}};
  auto theirs = record_of(kNoon, "adopted from the node's taint");
  theirs.past.losses = {{.owner_uid = "b", .at = kNoon + minutes(1), .holders = {}},
                        {.owner_uid = "a", .at = kNoon + minutes(2), .holders = {"2"}}};
  const auto record = merged(ours, {theirs});
  REQUIRE(record.past.losses.size() == 2);
  CHECK(record.past.losses[0] == OwnerLoss{.owner_uid = "a", .at = kNoon + minutes(2), .holders = {"2"}});
  CHECK(record.past.losses[1].owner_uid == "b");
}

TEST_CASE("another card in the place is judged by which of the two was bad last") {
  auto ours = record_of(kNoon);
  ours.card = {.value = "GPU-1", .attribute = "uuid", .host_uid = {}};
  for (const bool is_later : {false, true}) {
    auto theirs = record_of(is_later ? kNoon + hours(1) : kNoon - hours(1));
    theirs.card = {.value = "GPU-2", .attribute = "uuid", .host_uid = {}};
    CHECK(merged(ours, {theirs}).card.value == (is_later ? "GPU-2" : "GPU-1"));
  }
}

TEST_CASE("a card that has left its place is remembered once, and the caps are ours alone") {
  StateContent ours;
  StateContent earlier;
  auto card = ended(record_of(kNoon), kNoon + hours(1));
  card.card = {.value = "GPU-1", .attribute = "uuid", .host_uid = {}};
  ours.departed = {card};
  earlier.departed = {card};
  auto other = card;
  other.card.value = "GPU-2";
  earlier.departed.push_back(other);
  earlier.caps.recall(kKey, {.node = "node-a", .at = kNoon, .evicted = true});
  merge_earlier(ours, std::move(earlier), {});
  CHECK(ours.departed.size() == 2);
  CHECK(ours.caps == CapBook());
}

}  // namespace dhc::state_merge_test
