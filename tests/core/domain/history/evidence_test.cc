#include "domain/history/evidence.h"

#include <doctest/doctest.h>

namespace dhc::evidence_test {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using P = EvidencePhase;
using E = EvidenceEvent;

Now at(minutes time) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + hours(12);
  return {.mono = MonoTime(hours(100)) + time, .wall = noon + time};
}

IncidentEvidence in_phase(P phase) {
  IncidentEvidence evidence;
  switch (phase) {
    case P::Bad:
      break;
    case P::Quiet:
      evidence.take(E::Silent, at(minutes(1)));
      break;
    case P::Well:
      evidence.take(E::CalledHealthy, at(minutes(1)));
      break;
    case P::Relapsed:
      evidence.take(E::CalledHealthy, at(minutes(1)));
      evidence.take(E::CalledBad, at(minutes(2)));
      break;
    case P::QuietAgain:
      evidence.take(E::CalledHealthy, at(minutes(1)));
      evidence.take(E::Silent, at(minutes(2)));
      break;
  }
  REQUIRE(evidence.phase() == phase);
  return evidence;
}

void check_whole(const IncidentEvidence& evidence) {
  const auto phase = evidence.phase();
  CHECK(evidence.quiet_since().has_value() == (phase == P::Quiet || phase == P::Well || phase == P::QuietAgain));
  CHECK(evidence.healthy_since().has_value() == (phase == P::Well));
  CHECK(evidence.was_well() == (phase == P::Well || phase == P::Relapsed || phase == P::QuietAgain));
}

}  // namespace

TEST_CASE("what is heard of a device goes where the table says, from every phase, by every pair of events") {
  for (const auto phase : kEvidencePhases) {
    for (const auto first : kEvidenceEvents) {
      for (const auto second : kEvidenceEvents) {
        CAPTURE(to_string(phase));
        CAPTURE(to_string(first));
        CAPTURE(to_string(second));
        auto evidence = in_phase(phase);
        evidence.take(first, at(minutes(10)));
        CHECK(evidence.phase() == next_of(phase, first));
        check_whole(evidence);
        const auto between = evidence;
        evidence.take(second, at(minutes(20)));
        CHECK(evidence.phase() == next_of(between.phase(), second));
        check_whole(evidence);
        // Time runs on as long as nobody interrupts it.
        if (between.quiet_since() && evidence.quiet_since()) CHECK(evidence.quiet_since() == between.quiet_since());
        if (between.healthy_since() && evidence.healthy_since()) {
          CHECK(evidence.healthy_since() == between.healthy_since());
        }
        // A bad word interrupts both; Healthy counts from its own beginning.
        if (second == E::CalledBad) CHECK_FALSE(evidence.quiet_since());
        if (second == E::CalledHealthy && !between.healthy_since()) {
          CHECK(evidence.healthy_since()->wall == at(minutes(20)).wall);
        }
        // Whoever has called it healthy is remembered until that is taken back.
        CHECK(evidence.was_well() == (second == E::CalledHealthy || (second != E::TakenBack && between.was_well())));
      }
    }
  }
}

TEST_CASE("what is remembered of the evidence is since when the device is quiet") {
  CHECK(IncidentEvidence(std::nullopt).phase() == P::Bad);
  CHECK(IncidentEvidence(at(minutes(3)).wall).phase() == P::Quiet);
  CHECK(IncidentEvidence(at(minutes(3)).wall).quiet_since() == at(minutes(3)).wall);
}

TEST_CASE("a quiet time can be moved, and none is made by that") {
  for (const auto phase : kEvidencePhases) {
    auto evidence = in_phase(phase);
    evidence.be_quiet_since(at(minutes(7)).wall);
    CHECK(evidence.phase() == phase);
    check_whole(evidence);
    if (evidence.quiet_since()) CHECK(evidence.quiet_since() == at(minutes(7)).wall);
  }
}

}  // namespace dhc::evidence_test
