// What a guilty workload did to several devices of one card is taken back from the card.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/incidents/incident_store.h"

namespace dhc::excused_card_test {

namespace {

using std::chrono::hours;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
const Now kNow = {.mono = MonoTime(hours(100)), .wall = kNoon + hours(3)};

DeviceKey replica(int number) {
  return DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1::" + std::to_string(number));
}

/// Each of three devices of a card has broken, an hour after the one before; the last one is quarantined for that.
IncidentStore broken_in_turn() {
  std::vector<DeviceRecord> records;
  for (int i = 0; i < 3; ++i) {
    DeviceRecord record;
    record.key = replica(i);
    record.past.policy = "p";
    record.past.incidents.push_back({.at = kNoon + hours(i), .reason = {}});
    record.past.count = 1;
    record.past.penalty = 1;
    record.past.penalty_at = kNoon + hours(i);
    if (i == 2) {
      record.past.is_lemon = true;
      IncidentFacts facts;
      facts.since = facts.opened_at = kNoon + hours(i);
      record.incident = Incident::going_on(std::move(facts), true, Acknowledged::No);
    }
    records.push_back(std::move(record));
  }
  IncidentStore store;
  store.load(std::move(records), {});
  return store;
}

/// After these were excused.
DeviceRecord last_of(IncidentStore& store, const std::vector<int>& excused, double limit) {
  Policy policy;
  policy.policies.resize(1);
  policy.policies.front().name = "p";
  policy.policies.front().recover.half_life = hours(720);
  policy.policies.front().recover.quarantine_above = limit;
  std::vector<DeviceOnset> onsets;
  for (const int number : excused) {
    DeviceOnset onset;
    onset.card = DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1");
    onset.at = onset.named_at = kNoon + hours(number);
    onsets.push_back(std::move(onset));
  }
  store.excuse(onsets, Suspects(), World(), policy, kNow);
  return *store.find(replica(2));
}

}  // namespace

TEST_CASE("A card whose devices a guilty workload has broken in turn leaves quarantine") {
  for (const auto& excused : {std::vector{0, 1, 2}, std::vector{2}}) {
    auto store = broken_in_turn();
    const auto last = last_of(store, excused, 2.5);
    CHECK(last.incident.phase() == IncidentPhase::Probation);
    CHECK(!last.past.is_lemon);
    CHECK(last.past.penalty == doctest::Approx(0).epsilon(0.01));
  }
}

TEST_CASE("What is left of a card that is above the limit without the guilty workload stays quarantined") {
  auto store = broken_in_turn();
  const auto last = last_of(store, {2}, 1.5);
  CHECK(last.incident.phase() == IncidentPhase::Quarantined);
  CHECK(last.past.is_lemon);
}

namespace {

const DeviceKey kGpu0 = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");

/// A quarantined device that broke at these hours before now, the last time in an incident that goes on.
DeviceRecord quarantined(const std::vector<int>& hours_ago, double penalty) {
  DeviceRecord record;
  record.key = kGpu0;
  record.past.policy = "p";
  for (const int ago : hours_ago) record.past.incidents.push_back({.at = kNow.wall - hours(ago), .reason = {}});
  record.past.count = std::ssize(record.past.incidents);
  record.past.penalty = penalty;
  record.past.penalty_at = kNow.wall - hours(hours_ago.back());
  record.past.is_lemon = true;
  IncidentFacts facts;
  facts.since = facts.opened_at = kNow.wall - hours(hours_ago.back());
  record.incident = Incident::going_on(std::move(facts), true, Acknowledged::No);
  return record;
}

/// After what broke at these hours before now was put down to what ran on it.
DeviceRecord excused(DeviceRecord record, const std::vector<int>& hours_ago, double limit) {
  IncidentStore store;
  std::vector<DeviceRecord> records;
  records.push_back(std::move(record));
  store.load(std::move(records), {});
  Policy policy;
  policy.policies.resize(1);
  policy.policies.front().name = "p";
  policy.policies.front().recover.half_life = hours(720);
  policy.policies.front().recover.quarantine_above = limit;
  std::vector<DeviceOnset> onsets;
  for (const int ago : hours_ago) {
    DeviceOnset onset;
    onset.card = kGpu0;
    onset.at = onset.named_at = kNow.wall - hours(ago);
    onsets.push_back(std::move(onset));
  }
  store.excuse(onsets, Suspects(), World(), policy, kNow);
  return *store.find(kGpu0);
}

}  // namespace

TEST_CASE("A device that was quarantined for its own breaks stays so where the limit was raised since") {
  const auto record = excused(quarantined({5, 4, 3, 2}, 4), {2}, 6);
  CHECK(record.incident.phase() == IncidentPhase::Quarantined);
  CHECK(record.past.is_lemon);
}

TEST_CASE("A device that was quarantined for its own breaks stays so although its penalty was written down rounded") {
  // 1 + 2^(-719/720) is above the limit; what is left of 2.5 as of now is not.
  const auto record = excused(quarantined({722, 3, 2}, 2.5), {2}, 1.5);
  CHECK(record.incident.phase() == IncidentPhase::Quarantined);
  CHECK(record.past.is_lemon);
}

TEST_CASE("A device that what ran on it has broken alone leaves quarantine, whatever the limit is now") {
  for (const double limit : {0.5, 1.5, 6.0}) {
    CAPTURE(limit);
    const auto record = excused(quarantined({3, 2}, 2), {3, 2}, limit);
    CHECK(record.incident.phase() == IncidentPhase::Probation);
    CHECK_FALSE(record.past.is_lemon);
  }
}

TEST_CASE("A quarantine ends with what had led to it also where the incident that goes on is the device's own") {
  const auto record = excused(quarantined({3, 2}, 2), {3}, 1.5);
  CHECK(record.incident.phase() == IncidentPhase::Open);
  CHECK_FALSE(record.past.is_lemon);
  CHECK(record.past.penalty == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("What was taken back once is not taken back again") {
  auto record = excused(quarantined({4, 3, 2}, 3), {3}, 9);
  const auto penalty = record.past.penalty;
  record = excused(std::move(record), {3}, 9);
  CHECK(record.past.penalty == doctest::Approx(penalty).epsilon(0.001));
}

namespace {

DeviceKey partition(int number) { return DeviceKey::dra("gpu.example.com", "node-a", "mig-" + std::to_string(number)); }

/// A partition of one card that broke at these hours after noon.
DeviceRecord partition_broken(int number, const std::vector<int>& hours_after) {
  DeviceRecord record;
  record.key = partition(number);
  record.card.attribute = "gpu.example.com/parentUUID";
  record.card.value = "GPU-1/mig-" + std::to_string(number);
  record.past.policy = "p";
  for (const int after : hours_after) record.past.incidents.push_back({.at = kNoon + hours(after), .reason = {}});
  record.past.count = std::ssize(hours_after);
  record.past.penalty = static_cast<double>(record.past.count);
  record.past.penalty_at = kNoon + hours(hours_after.back());
  return record;
}

DeviceRecord quarantined_partition(int number, const std::vector<int>& hours_after) {
  auto record = partition_broken(number, hours_after);
  record.past.is_lemon = true;
  IncidentFacts facts;
  facts.since = facts.opened_at = kNoon + hours(hours_after.back());
  record.incident = Incident::going_on(std::move(facts), true, Acknowledged::No);
  return record;
}

/// After what broke mig-0 at these hours after noon was put down to what ran on it.
IncidentStore excused_beside(DeviceRecord beside, const std::vector<int>& hours_after, double limit) {
  std::vector<DeviceRecord> records;
  records.push_back(partition_broken(0, {0, 1}));
  records.push_back(std::move(beside));
  IncidentStore store;
  store.load(std::move(records), {});
  Policy policy;
  policy.policies.resize(1);
  policy.policies.front().name = "p";
  policy.policies.front().recover.half_life = hours(720);
  policy.policies.front().recover.quarantine_above = limit;
  std::vector<DeviceOnset> onsets;
  for (const int after : hours_after) {
    DeviceOnset onset;
    onset.card = partition(0);
    onset.at = onset.named_at = kNoon + hours(after);
    onsets.push_back(std::move(onset));
  }
  store.excuse(onsets, Suspects(), World(), policy, kNow);
  return store;
}

}  // namespace

TEST_CASE("A partition that was quarantined for what a guilty workload did to another of its card leaves quarantine") {
  auto store = excused_beside(quarantined_partition(1, {2}), {0, 1}, 2);
  const auto& beside = *store.find(partition(1));
  // It has broken by itself once: its incident goes on.
  CHECK(beside.incident.phase() == IncidentPhase::Open);
  CHECK_FALSE(beside.past.is_lemon);
  CHECK(beside.past.penalty == doctest::Approx(1));
  CHECK(store.take_touched().contains(partition(1)));
}

TEST_CASE("A partition that nobody has put back since leaves quarantine likewise, and breaks anew as an ordinary one") {
  auto past = partition_broken(1, {2});
  past.past.is_lemon = true;
  const auto store = excused_beside(std::move(past), {0, 1}, 2);
  CHECK_FALSE(store.find(partition(1))->past.is_lemon);
}

TEST_CASE("A partition that is above the limit without what a guilty workload did to its card stays quarantined") {
  // By itself, or with what is left of the card: 1 + 2 of 3 and 1 + 1 of 3.
  const auto by_itself = excused_beside(quarantined_partition(1, {-3, -2, 2}), {0, 1}, 2);
  CHECK(by_itself.find(partition(1))->is_quarantined());
  CHECK(by_itself.find(partition(1))->past.is_lemon);
  const auto with_its_card = excused_beside(quarantined_partition(1, {2}), {0}, 1.5);
  CHECK(with_its_card.find(partition(1))->is_quarantined());
  CHECK(with_its_card.find(partition(1))->past.is_lemon);
}

TEST_CASE("A partition that an operator vouches for, or that is of another card, is left as it is") {
  auto other = quarantined_partition(1, {2});
  other.card.value = "GPU-2/mig-1";
  const auto store = excused_beside(std::move(other), {0, 1}, 2);
  CHECK(store.find(partition(1))->is_quarantined());
}

}  // namespace dhc::excused_card_test
