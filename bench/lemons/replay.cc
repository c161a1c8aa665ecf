#include "bench/lemons/replay.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "domain/history/device_record.h"

namespace dhc::lemons {

namespace {

double days_in_service(const BrokenDevice& device, WallTime since) {
  double days = 0;
  for (const tuning::Span& span : device.in_service) {
    days +=
        std::max(0.0, std::chrono::duration<double, std::ratio<86400>>(span.to - std::max(span.from, since)).count());
  }
  return days;
}

void replay(const BrokenDevice& device, const RecoverRules& rules, Ending ending, Outcome& outcome) {
  DeviceHistory past;
  std::optional<WallTime> open_until;
  std::optional<WallTime> quarantined_at;
  std::size_t prevented = 0;
  for (const tuning::Fault& fault : device.faults) {
    if (!open_until || fault.from >= *open_until) {
      if (!past.is_lemon && is_negligible(past, rules, fault.from)) past = {};
      count_incident(past, rules, fault.from);
      ++outcome.incidents;
      if (quarantined_at) {
        ++prevented;
      } else if (past.is_lemon) {
        quarantined_at = fault.from;
      }
    }
    const WallTime end = fault.to + (ending == Ending::Hold ? hold_of(past, rules) : rules.healthy_for);
    open_until = std::max(open_until.value_or(end), end);
  }
  if (!quarantined_at) return;
  ++outcome.quarantined;
  outcome.prevented += prevented;
  if (prevented == 0) ++outcome.in_vain;
  outcome.lost_days += days_in_service(device, *quarantined_at);
}

}  // namespace

Outcome replay(const FaultTrace& trace, const RecoverRules& rules, Ending ending) {
  Outcome outcome;
  for (const BrokenDevice& device : trace.broken) replay(device, rules, ending, outcome);
  return outcome;
}

RecoverRules rules_of(const Choice& choice) {
  RecoverRules rules;
  rules.half_life = choice.half_life;
  rules.quarantine_above = choice.quarantine_above;
  return rules;
}

std::optional<Choice> best_within(const FaultTrace& trace, double share) {
  std::optional<Choice> best;
  std::tuple<std::size_t, std::size_t, std::size_t> least;
  for (const auto half_life : kHalfLives) {
    for (const double limit : kLimits) {
      const Choice choice{half_life, limit};
      const auto held = replay(trace, rules_of(choice), Ending::Hold);
      const auto repaired = replay(trace, rules_of(choice), Ending::Evidence);
      if (std::max(held.lost_days, repaired.lost_days) > share * trace.device_days || held.prevented == 0) continue;
      const std::tuple cost(held.incidents - held.prevented, held.in_vain, held.quarantined);
      if (best && cost >= least) continue;
      best = choice;
      least = cost;
    }
  }
  return best;
}

}  // namespace dhc::lemons
