#include "domain/tuning/outcome.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace dhc::tuning {

namespace {

Millis overlap(const Span& a, const Span& b) {
  const auto from = std::max(a.from, b.from);
  const auto to = std::min(a.to, b.to);
  return from < to ? std::chrono::duration_cast<Millis>(to - from) : Millis(0);
}

/// In service, held and not bad. Faults may overlap each other; what is held may not.
Millis held_well(const std::vector<Span>& in_service, const std::vector<Fault>& faults, const std::vector<Span>& held) {
  Millis sum{0};
  for (const Span& span : held) {
    for (const Span& service : in_service) {
      const Span both{std::max(span.from, service.from), std::min(span.to, service.to)};
      if (both.from >= both.to) continue;
      sum += overlap(span, service);
      WallTime counted = both.from;
      for (const Fault& fault : faults) {
        const Span bad{std::max(fault.from, counted), fault.to};
        if (bad.from >= bad.to) continue;
        sum -= overlap(bad, both);
        counted = bad.to;
      }
    }
  }
  return sum;
}

/// A card with several devices that broke: it is bad while one of them is, and held while one is.
struct SharedCard {
  std::vector<Span> in_service;
  std::vector<Fault> faults;
  std::vector<Span> held;
};

Millis held_well(SharedCard card) {
  std::ranges::sort(card.faults, {}, &Fault::from);
  std::ranges::sort(card.held, {}, &Span::from);
  std::vector<Span> held;
  for (const Span& span : card.held) {
    if (!held.empty() && span.from <= held.back().to) {
      held.back().to = std::max(held.back().to, span.to);
    } else {
      held.push_back(span);
    }
  }
  return held_well(card.in_service, card.faults, held);
}

}  // namespace

Outcome outcome_of(const FaultTrace& trace, const Choice& choice, Witness witness) {
  Outcome outcome;
  std::map<std::string_view, SharedCard> cards;
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
    if (device.card.empty()) {
      outcome.held_well += held_well(device.in_service, device.faults, life.held);
      continue;
    }
    auto& card = cards[device.card];
    card.in_service = device.in_service;
    card.faults.insert(card.faults.end(), device.faults.begin(), device.faults.end());
    card.held.insert(card.held.end(), life.held.begin(), life.held.end());
  }
  for (auto& [name, card] : cards) outcome.held_well += held_well(std::move(card));
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
