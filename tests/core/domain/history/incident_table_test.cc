// The life of incidents: every phase, every event, and every pair of events, one after the other.
#include "domain/history/incident_table.h"

#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/history/device_record.h"

namespace dhc::incident_table_test {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using P = IncidentPhase;
using E = IncidentEvent;

const WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);

/// A record, and the events that it takes as the incident store hands them out.
struct Life {
  DeviceRecord record;
  WallTime now = kNoon;

  void take(E event) {
    now += minutes(1);
    auto& incident = record.incident;
    switch (event) {
      case E::Began:
      case E::BeganAsLemon: {
        auto& past = record.past;
        ++past.count;
        past.penalty += 1;
        past.is_lemon = past.is_lemon || event == E::BeganAsLemon;
        IncidentFacts facts;
        facts.since = now;
        facts.opened_at = now;
        incident.begin(std::move(facts), past.is_lemon);
        break;
      }
      case E::Vouched:
        (void)acknowledge(record, Acknowledged::Annotated);
        break;
      case E::Recovered:
        incident.recover(now, "evidence");
        break;
      case E::HeldOut:
        incident.hold_out(now, "no evidence", now + hours(24), false);
        break;
      case E::Replaced:
        incident.replace(now, "another device", incident.was_tainted());
        break;
      case E::PastDeleted:
        record.past.is_lemon = false;
        incident.take(event);
        break;
      case E::Excused:
        record.past.is_lemon = false;
        incident.excuse(now, "what ran on it", now + std::chrono::hours(24));
        break;
      case E::ProbationOver:
      case E::Departed:
        incident.take(event);
        break;
    }
  }
};

/// A life that has come to this phase, by the shortest way.
Life in_phase(P phase) {
  Life life;
  switch (phase) {
    case P::None:
      break;
    case P::Open:
      life.take(E::Began);
      break;
    case P::Quarantined:
      life.take(E::BeganAsLemon);
      break;
    case P::Acknowledged:
      life.take(E::Began);
      life.take(E::Vouched);
      break;
    case P::Probation:
      life.take(E::Began);
      life.take(E::HeldOut);
      break;
    case P::Ended:
      life.take(E::Began);
      life.take(E::Recovered);
      break;
  }
  REQUIRE(life.record.incident.phase() == phase);
  return life;
}

std::string words(P phase, E event) { return std::string(to_string(phase)) + " " + std::string(to_string(event)); }

/// What holds of every record, whatever has happened to it.
void check_whole(const DeviceRecord& record) {
  const auto& incident = record.incident;
  const auto phase = incident.phase();
  CHECK((incident.facts() != nullptr) == is_open(phase));
  CHECK((incident.end() != nullptr) == (phase == P::Ended || phase == P::Probation));
  CHECK(incident.probation_until().has_value() == (phase == P::Probation));
  CHECK((phase == P::Acknowledged) == (incident.is_open() && incident.is_acknowledged()));
  // A lemon's incident is quarantined until an operator vouches, and no other is.
  if (phase == P::Quarantined) CHECK(record.past.is_lemon);
  if (phase == P::Open || phase == P::Acknowledged) CHECK_FALSE(record.past.is_lemon);
}

}  // namespace

TEST_CASE("an incident's record goes where the table says, from every phase, by every event") {
  for (const auto phase : kIncidentPhases) {
    for (const auto event : kIncidentEvents) {
      CAPTURE(words(phase, event));
      auto life = in_phase(phase);
      const auto step = step_of(phase, event);
      const auto before = life.record;
      // A lemon stays one over its incidents.
      const bool stays_lemon = event == E::Began && before.past.is_lemon;
      life.take(event);
      CHECK(life.record.incident.phase() == (stays_lemon ? P::Quarantined : step.to));
      check_whole(life.record);
      const auto& now = life.record.incident;
      const bool is_another = step.then == IncidentThen::Begin;
      CHECK(is_another == (event == E::Began || event == E::BeganAsLemon));
      CHECK((life.record.past.count != before.past.count) == is_another);
      if (is_another) CHECK(now.facts()->opened_at == life.now);
      if (step.then == IncidentThen::Nothing) {
        CHECK(step.to == phase);
        CHECK(now.acknowledged() == before.incident.acknowledged());
      }
      if (step.then == IncidentThen::Pay) CHECK(life.record.past.penalty == 0);
      if (step.then == IncidentThen::End) CHECK(now.end()->at == life.now);
      // Whatever goes on is the same incident as before, unless another began.
      if (!is_another && is_open(step.to)) CHECK(now.facts()->opened_at == before.incident.facts()->opened_at);
    }
  }
}

TEST_CASE("every pair of events leaves an incident whole, and no pair brings back what the first has ended") {
  std::set<std::pair<P, P>> reached;
  for (const auto phase : kIncidentPhases) {
    for (const auto first : kIncidentEvents) {
      for (const auto second : kIncidentEvents) {
        CAPTURE(words(phase, first));
        CAPTURE(to_string(second));
        auto life = in_phase(phase);
        life.take(first);
        const auto between = life.record;
        life.take(second);
        check_whole(life.record);
        const auto to = life.record.incident.phase();
        reached.emplace(phase, to);
        const bool began = second == E::Began || second == E::BeganAsLemon;
        // Only an incident that begins opens anything.
        if (is_open(to)) CHECK((began || between.is_open()));
        // Only an operator, another device in its place, its departure or who is guilty in its stead ends a quarantine.
        if (between.is_quarantined() && to != P::Quarantined) {
          const bool by_operator = second == E::Vouched || second == E::PastDeleted;
          CHECK((by_operator || second == E::Replaced || second == E::Departed || second == E::Excused));
        }
        // Nothing but a hold without evidence, or a workload's guilt, puts on probation.
        if (to == P::Probation && between.incident.phase() != P::Probation)
          CHECK((second == E::HeldOut || second == E::Excused));
        // The penalty is paid by an operator's word alone, once.
        if (life.record.past.penalty < between.past.penalty) CHECK(second == E::Vouched);
      }
    }
  }
  // Two events lead from every phase to every other, so that no pair was checked in vain.
  CHECK(reached.size() == kIncidentPhases.size() * kIncidentPhases.size());
}

TEST_CASE("an event that comes twice says the second time nothing, unless it begins another incident") {
  for (const auto phase : kIncidentPhases) {
    for (const auto event : kIncidentEvents) {
      if (event == E::Began || event == E::BeganAsLemon) continue;
      CAPTURE(words(phase, event));
      const auto once = step_of(phase, event).to;
      CHECK(step_of(once, event).to == once);
      // Another device in the place may be followed by another one.
      if (event != E::Replaced) CHECK(step_of(once, event).then == IncidentThen::Nothing);
    }
  }
}

TEST_CASE("the first word of an operator counts, and an end keeps it") {
  DeviceRecord record;
  record.incident.begin({}, false);
  CHECK(acknowledge(record, Acknowledged::Changed));
  CHECK_FALSE(acknowledge(record, Acknowledged::Annotated));
  CHECK(record.incident.acknowledged() == Acknowledged::Changed);
  record.incident.recover(kNoon, "quiet");
  CHECK(record.incident.acknowledged() == Acknowledged::Changed);
  CHECK_FALSE(acknowledge(record, Acknowledged::Annotated));
  record.incident.replace(kNoon, "another device", true);
  CHECK(record.incident.acknowledged() == Acknowledged::No);
  CHECK(record.incident.was_tainted());
}

TEST_CASE("what an incident has seen of our taint is told after its end") {
  for (const bool was_tainted : {false, true}) {
    for (const auto how : {E::Recovered, E::HeldOut}) {
      Life life;
      life.take(E::Began);
      life.record.incident.facts()->was_tainted = was_tainted;
      life.take(how);
      CHECK(life.record.incident.was_tainted() == was_tainted);
      life.take(E::ProbationOver);
      CHECK(life.record.incident.was_tainted() == was_tainted);
      life.take(E::Began);
      CHECK_FALSE(life.record.incident.was_tainted());
    }
  }
}

TEST_CASE("what is remembered of an incident is in the phase that was written down") {
  for (const auto phase : kIncidentPhases) {
    CAPTURE(to_string(phase));
    const auto life = in_phase(phase);
    const auto& incident = life.record.incident;
    Incident again;
    if (const auto* facts = incident.facts()) {
      again = Incident::going_on(*facts, life.record.past.is_lemon, incident.acknowledged());
    } else if (const auto* end = incident.end()) {
      again = Incident::over(*end, incident.probation_until());
    }
    CHECK(again.phase() == phase);
    CHECK(again.acknowledged() == incident.acknowledged());
    CHECK(again.probation_until() == incident.probation_until());
  }
}

}  // namespace dhc::incident_table_test
