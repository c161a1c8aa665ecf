#include "domain/history/evidence.h"

namespace dhc {
namespace {

struct EvidenceRow {
  EvidencePhase bad;
  EvidencePhase quiet;
  EvidencePhase well;
  EvidencePhase relapsed;
  EvidencePhase quiet_again;
};

// clang-format off
EvidenceRow row_of(EvidenceEvent event) {
  using P = EvidencePhase;
  switch (event) {                      //     Bad       Quiet     Well           Relapsed       QuietAgain
    case EvidenceEvent::CalledBad:     return {P::Bad,   P::Bad,   P::Relapsed,   P::Relapsed,   P::Relapsed};
    case EvidenceEvent::Silent:        return {P::Quiet, P::Quiet, P::QuietAgain, P::QuietAgain, P::QuietAgain};
    case EvidenceEvent::CalledHealthy: return {P::Well,  P::Well,  P::Well,       P::Well,       P::Well};
    case EvidenceEvent::TakenBack:     return {P::Bad,   P::Quiet, P::Quiet,      P::Bad,        P::Quiet};
  }
  return {P::Bad, P::Quiet, P::Well, P::Relapsed, P::QuietAgain};
}
// clang-format on

}  // namespace

EvidencePhase next_of(EvidencePhase phase, EvidenceEvent event) {
  const auto row = row_of(event);
  switch (phase) {
    case EvidencePhase::Bad:
      return row.bad;
    case EvidencePhase::Quiet:
      return row.quiet;
    case EvidencePhase::Well:
      return row.well;
    case EvidencePhase::Relapsed:
      return row.relapsed;
    case EvidencePhase::QuietAgain:
      return row.quiet_again;
  }
  return row.bad;
}

IncidentEvidence::IncidentEvidence(std::optional<WallTime> quiet_since) {
  if (quiet_since) state_ = Quiet{*quiet_since};
}

EvidencePhase IncidentEvidence::phase() const { return static_cast<EvidencePhase>(state_.index()); }

std::optional<WallTime> IncidentEvidence::quiet_since() const {
  if (const auto* quiet = std::get_if<Quiet>(&state_)) return quiet->since;
  if (const auto* well = std::get_if<Well>(&state_)) return well->quiet_since;
  if (const auto* again = std::get_if<QuietAgain>(&state_)) return again->since;
  return std::nullopt;
}

std::optional<Moment> IncidentEvidence::healthy_since() const {
  const auto* well = std::get_if<Well>(&state_);
  return well == nullptr ? std::nullopt : std::optional(well->healthy_since);
}

bool IncidentEvidence::was_well() const {
  switch (phase()) {
    case EvidencePhase::Well:
    case EvidencePhase::Relapsed:
    case EvidencePhase::QuietAgain:
      return true;
    case EvidencePhase::Bad:
    case EvidencePhase::Quiet:
      return false;
  }
  return false;
}

void IncidentEvidence::take(EvidenceEvent event, const Now& now) {
  const auto quiet = quiet_since().value_or(now.wall);
  switch (next_of(phase(), event)) {
    case EvidencePhase::Bad:
      state_ = Bad{};
      return;
    case EvidencePhase::Quiet:
      state_ = Quiet{quiet};
      return;
    case EvidencePhase::Well:
      state_ = Well{.quiet_since = quiet, .healthy_since = healthy_since().value_or(moment_of(now))};
      return;
    case EvidencePhase::Relapsed:
      state_ = Relapsed{};
      return;
    case EvidencePhase::QuietAgain:
      state_ = QuietAgain{quiet};
      return;
  }
}

void IncidentEvidence::be_quiet_since(WallTime since) {
  if (auto* quiet = std::get_if<Quiet>(&state_)) quiet->since = since;
  if (auto* well = std::get_if<Well>(&state_)) well->quiet_since = since;
  if (auto* again = std::get_if<QuietAgain>(&state_)) again->since = since;
}

std::string_view to_string(EvidencePhase phase) {
  switch (phase) {
    case EvidencePhase::Bad:
      return "Bad";
    case EvidencePhase::Quiet:
      return "Quiet";
    case EvidencePhase::Well:
      return "Well";
    case EvidencePhase::Relapsed:
      return "Relapsed";
    case EvidencePhase::QuietAgain:
      return "QuietAgain";
  }
  return "Unknown";
}

std::string_view to_string(EvidenceEvent event) {
  switch (event) {
    case EvidenceEvent::CalledBad:
      return "CalledBad";
    case EvidenceEvent::Silent:
      return "Silent";
    case EvidenceEvent::CalledHealthy:
      return "CalledHealthy";
    case EvidenceEvent::TakenBack:
      return "TakenBack";
  }
  return "Unknown";
}

}  // namespace dhc
