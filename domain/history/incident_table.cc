#include "domain/history/incident_table.h"

namespace dhc {
namespace {

struct IncidentRow {
  IncidentStep none;
  IncidentStep open;
  IncidentStep quarantined;
  IncidentStep acknowledged;
  IncidentStep probation;
  IncidentStep ended;
};

// clang-format off
/// Why, where the row does not say it:
/// - Began, while one goes on: the device was Healthy in between for so long, or an operator has vouched for it and it
///   was Healthy since, that this is another incident.
/// - Began, while quarantined: evidence ends no quarantine, so another incident does not either.
/// - Vouched, the second time: the first word counts, and how it was said decides what becomes of our taint.
/// - HeldOut, while acknowledged: an operator vouches, so it is Recovered that ends it, and there is no probation.
/// - Excused, while quarantined: it is told of lemons by this incident alone, others keep it quarantined.
/// - Replaced, without an incident: what stands there on our account is still to be removed, and that is told.
/// - PastDeleted: the past is to be forgotten, not the present.
IncidentRow row_of(IncidentEvent event) {
  using enum IncidentThen;
  using P = IncidentPhase;
  switch (event) {                      //     None                     Open                     Quarantined              Acknowledged             Probation                Ended
    case IncidentEvent::Began:         return {{P::Open, Begin},        {P::Open, Begin},        {P::Quarantined, Begin}, {P::Open, Begin},        {P::Open, Begin},        {P::Open, Begin}};
    case IncidentEvent::BeganAsLemon:  return {{P::Quarantined, Begin}, {P::Quarantined, Begin}, {P::Quarantined, Begin}, {P::Quarantined, Begin}, {P::Quarantined, Begin}, {P::Quarantined, Begin}};
    case IncidentEvent::Vouched:       return {{P::None, Nothing},      {P::Acknowledged, Pay},  {P::Acknowledged, Pay},  {P::Acknowledged, Nothing}, {P::Probation, Nothing}, {P::Ended, Nothing}};
    case IncidentEvent::Recovered:     return {{P::None, Nothing},      {P::Ended, End},         {P::Quarantined, Nothing}, {P::Ended, End},       {P::Probation, Nothing}, {P::Ended, Nothing}};
    case IncidentEvent::HeldOut:       return {{P::None, Nothing},      {P::Probation, End},     {P::Quarantined, Nothing}, {P::Acknowledged, Nothing}, {P::Probation, Nothing}, {P::Ended, Nothing}};
    case IncidentEvent::ProbationOver: return {{P::None, Nothing},      {P::Open, Nothing},      {P::Quarantined, Nothing}, {P::Acknowledged, Nothing}, {P::Ended, Release},   {P::Ended, Nothing}};
    case IncidentEvent::Replaced:      return {{P::Ended, End},         {P::Ended, End},         {P::Ended, End},         {P::Ended, End},         {P::Ended, End},         {P::Ended, End}};
    case IncidentEvent::Departed:      return {{P::None, Nothing},      {P::None, Clear},        {P::None, Clear},        {P::None, Clear},        {P::Ended, Release},     {P::Ended, Nothing}};
    case IncidentEvent::PastDeleted:   return {{P::None, Nothing},      {P::Open, Nothing},      {P::Open, Lift},         {P::Acknowledged, Nothing}, {P::Probation, Nothing}, {P::Ended, Nothing}};
    case IncidentEvent::Excused:       return {{P::None, Nothing},      {P::Probation, End},     {P::Probation, End},     {P::Acknowledged, Nothing}, {P::Probation, Nothing}, {P::Ended, Nothing}};
  }
  return {{P::None, Nothing}, {P::Open, Nothing}, {P::Quarantined, Nothing}, {P::Acknowledged, Nothing}, {P::Probation, Nothing}, {P::Ended, Nothing}};
}
// clang-format on

}  // namespace

IncidentStep step_of(IncidentPhase phase, IncidentEvent event) {
  const auto row = row_of(event);
  switch (phase) {
    case IncidentPhase::None:
      return row.none;
    case IncidentPhase::Open:
      return row.open;
    case IncidentPhase::Quarantined:
      return row.quarantined;
    case IncidentPhase::Acknowledged:
      return row.acknowledged;
    case IncidentPhase::Probation:
      return row.probation;
    case IncidentPhase::Ended:
      return row.ended;
  }
  return row.none;
}

bool is_open(IncidentPhase phase) {
  switch (phase) {
    case IncidentPhase::Open:
    case IncidentPhase::Quarantined:
    case IncidentPhase::Acknowledged:
      return true;
    case IncidentPhase::None:
    case IncidentPhase::Probation:
    case IncidentPhase::Ended:
      return false;
  }
  return false;
}

std::string_view to_string(IncidentPhase phase) {
  switch (phase) {
    case IncidentPhase::None:
      return "None";
    case IncidentPhase::Open:
      return "Open";
    case IncidentPhase::Quarantined:
      return "Quarantined";
    case IncidentPhase::Acknowledged:
      return "Acknowledged";
    case IncidentPhase::Probation:
      return "Probation";
    case IncidentPhase::Ended:
      return "Ended";
  }
  return "Unknown";
}

std::string_view to_string(IncidentEvent event) {
  switch (event) {
    case IncidentEvent::Began:
      return "Began";
    case IncidentEvent::BeganAsLemon:
      return "BeganAsLemon";
    case IncidentEvent::Vouched:
      return "Vouched";
    case IncidentEvent::Recovered:
      return "Recovered";
    case IncidentEvent::HeldOut:
      return "HeldOut";
    case IncidentEvent::ProbationOver:
      return "ProbationOver";
    case IncidentEvent::Replaced:
      return "Replaced";
    case IncidentEvent::Departed:
      return "Departed";
    case IncidentEvent::PastDeleted:
      return "PastDeleted";
    case IncidentEvent::Excused:
      return "Excused";
  }
  return "Unknown";
}

std::string_view to_string(IncidentThen then) {
  switch (then) {
    case IncidentThen::Nothing:
      return "Nothing";
    case IncidentThen::Begin:
      return "Begin";
    case IncidentThen::Pay:
      return "Pay";
    case IncidentThen::Lift:
      return "Lift";
    case IncidentThen::End:
      return "End";
    case IncidentThen::Clear:
      return "Clear";
    case IncidentThen::Release:
      return "Release";
  }
  return "Unknown";
}

}  // namespace dhc
