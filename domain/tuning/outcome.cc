#include "domain/tuning/outcome.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace dhc::tuning {

namespace {

Millis overlap(const Span& a, const Span& b) {
  const auto from = std::max(a.from, b.from);
  const auto to = std::min(a.to, b.to);
  return from < to ? std::chrono::duration_cast<Millis>(to - from) : Millis(0);
}

/// In service, held and not bad. Faults may overlap each other.
Millis held_well(const BrokenDevice& device, const std::vector<Span>& held) {
  Millis sum{0};
  for (const Span& span : held) {
    for (const Span& service : device.in_service) {
      const Span both{std::max(span.from, service.from), std::min(span.to, service.to)};
      if (both.from >= both.to) continue;
      sum += overlap(span, service);
      WallTime counted = both.from;
      for (const Fault& fault : device.faults) {
        const Span bad{std::max(fault.from, counted), fault.to};
        if (bad.from >= bad.to) continue;
        sum -= overlap(bad, both);
        counted = bad.to;
      }
    }
  }
  return sum;
}

}  // namespace

Outcome outcome_of(const FaultTrace& trace, const Choice& choice, Witness witness) {
  Outcome outcome;
  for (const BrokenDevice& device : trace.broken) {
    const auto life = life_of(device, trace, choice, witness);
    for (const Hit& hit : life.hits) {
      outcome.waited += hit.waited;
      if (hit.is_passing) ++outcome.passing;
      if (!hit.is_sure) {
        ++outcome.unsure;
      } else if (hit.is_first) {
        ++outcome.first;
      } else {
        ++outcome.repeats;
        if (hit.same_fault) ++outcome.same_fault;
      }
    }
    outcome.incidents += life.held.size();
    if (life.quarantined) ++outcome.quarantined;
    outcome.held_well += held_well(device, life.held);
  }
  return outcome;
}

double share_held(const FaultTrace& trace, const Outcome& outcome) {
  return trace.device_days > 0 ? Days(outcome.held_well).count() / trace.device_days : 0;
}

bool tells_of_years(const FaultTrace& trace) { return trace.to - trace.from >= Days(30); }

double repeats_a_year(const FaultTrace& trace, const Outcome& outcome) {
  if (!tells_of_years(trace)) return 0;
  return static_cast<double>(outcome.repeats) * 365 / Days(trace.to - trace.from).count();
}

}  // namespace dhc::tuning
