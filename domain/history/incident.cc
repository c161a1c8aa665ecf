#include "domain/history/incident.h"

#include <utility>

namespace dhc {

Incident Incident::going_on(IncidentFacts facts, bool is_lemon, Acknowledged acknowledged) {
  Incident incident;
  if (acknowledged != Acknowledged::No) {
    incident.go_on(IncidentPhase::Acknowledged, std::move(facts), acknowledged);
  } else {
    incident.go_on(is_lemon ? IncidentPhase::Quarantined : IncidentPhase::Open, std::move(facts));
  }
  return incident;
}

Incident Incident::over(IncidentEnd end, std::optional<WallTime> probation_until, bool is_unproven) {
  Incident incident;
  if (probation_until) {
    incident.state_ =
        OnProbation{.end = std::move(end), .until = *probation_until, .trial = {.is_unproven = is_unproven}};
  } else {
    incident.state_ = Over{std::move(end)};
  }
  return incident;
}

template <class State>
auto Incident::facts_in(State& state) -> decltype(&std::get<Open>(state).facts) {
  if (auto* open = std::get_if<Open>(&state)) return &open->facts;
  if (auto* lemon = std::get_if<Quarantined>(&state)) return &lemon->facts;
  if (auto* vouched = std::get_if<Vouched>(&state)) return &vouched->facts;
  return nullptr;
}
const IncidentFacts* Incident::facts() const { return facts_in(state_); }
IncidentFacts* Incident::facts() { return facts_in(state_); }

template <class State>
auto Incident::end_in(State& state) -> decltype(&std::get<Over>(state).end) {
  if (auto* probation = std::get_if<OnProbation>(&state)) return &probation->end;
  if (auto* over = std::get_if<Over>(&state)) return &over->end;
  return nullptr;
}
const IncidentEnd* Incident::end() const { return end_in(state_); }
IncidentEnd* Incident::end() { return end_in(state_); }

std::optional<WallTime> Incident::probation_until() const {
  const auto* probation = std::get_if<OnProbation>(&state_);
  return probation == nullptr ? std::nullopt : std::optional(probation->until);
}

const Trial* Incident::trial() const {
  const auto* probation = std::get_if<OnProbation>(&state_);
  return probation == nullptr ? nullptr : &probation->trial;
}
Trial* Incident::trial() {
  auto* probation = std::get_if<OnProbation>(&state_);
  return probation == nullptr ? nullptr : &probation->trial;
}

Acknowledged Incident::acknowledged() const {
  if (const auto* vouched = std::get_if<Vouched>(&state_)) return vouched->how;
  return end() == nullptr ? Acknowledged::No : end()->acknowledged;
}

bool Incident::was_tainted() const {
  if (facts() != nullptr) return facts()->was_tainted;
  return end() != nullptr && end()->was_tainted;
}

IncidentStep Incident::begin(IncidentFacts facts, bool is_lemon) {
  const auto step = step_of(phase(), is_lemon ? IncidentEvent::BeganAsLemon : IncidentEvent::Began);
  go_on(step.to, std::move(facts));
  return step;
}

IncidentStep Incident::vouch(Acknowledged how) {
  const auto step = step_of(phase(), IncidentEvent::Vouched);
  if (step.then == IncidentThen::Pay) go_on(step.to, std::move(*facts()), how);
  return step;
}

IncidentStep Incident::recover(WallTime at, std::string why) {
  const auto step = step_of(phase(), IncidentEvent::Recovered);
  if (step.then == IncidentThen::End) state_ = Over{end_of(at, std::move(why))};
  return step;
}

IncidentStep Incident::hold_out(WallTime at, std::string why, WallTime probation_until, bool is_unproven) {
  return put_on_probation(IncidentEvent::HeldOut, at, std::move(why), probation_until, is_unproven);
}

IncidentStep Incident::excuse(WallTime at, std::string why, WallTime probation_until) {
  return put_on_probation(IncidentEvent::Excused, at, std::move(why), probation_until, false);
}

IncidentStep Incident::put_on_probation(IncidentEvent event, WallTime at, std::string why, WallTime probation_until,
                                        bool is_unproven) {
  const auto step = step_of(phase(), event);
  if (step.then == IncidentThen::End) {
    state_ =
        OnProbation{.end = end_of(at, std::move(why)), .until = probation_until, .trial = {.is_unproven = is_unproven}};
  }
  return step;
}

IncidentStep Incident::replace(WallTime at, std::string why, bool was_tainted) {
  const auto step = step_of(phase(), IncidentEvent::Replaced);
  // Nobody has vouched for what is there now.
  state_ = Over{{.at = at, .why = std::move(why), .was_tainted = was_tainted}};
  return step;
}

IncidentStep Incident::take(IncidentEvent event) {
  const auto step = step_of(phase(), event);
  switch (step.then) {
    case IncidentThen::Clear:
      state_ = None{};
      break;
    case IncidentThen::Release:
      state_ = Over{std::move(*end())};
      break;
    case IncidentThen::Lift:
      go_on(step.to, std::move(*facts()));
      break;
    case IncidentThen::Nothing:
    case IncidentThen::Begin:
    case IncidentThen::Pay:
    case IncidentThen::End:
      break;  // these events bring what they need
  }
  return step;
}

bool Incident::end_probation_by(WallTime latest) {
  auto* probation = std::get_if<OnProbation>(&state_);
  if (probation == nullptr || probation->until <= latest) return false;
  probation->until = latest;
  return true;
}

IncidentEnd Incident::end_of(WallTime at, std::string why) const {
  return {.at = at,
          .why = std::move(why),
          .was_tainted = was_tainted(),
          .acknowledged = acknowledged(),
          .opened_at = facts() == nullptr ? std::nullopt : std::optional(named_at(*facts()))};
}

void Incident::go_on(IncidentPhase phase, IncidentFacts facts, Acknowledged how) {
  switch (phase) {
    case IncidentPhase::Open:
      state_ = Open{std::move(facts)};
      return;
    case IncidentPhase::Quarantined:
      state_ = Quarantined{std::move(facts)};
      return;
    case IncidentPhase::Acknowledged:
      state_ = Vouched{.facts = std::move(facts), .how = how};
      return;
    case IncidentPhase::None:
    case IncidentPhase::Probation:
    case IncidentPhase::Ended:
      return;  // the table sends no incident that goes on there
  }
}

}  // namespace dhc
