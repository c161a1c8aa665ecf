#include "bench/lemons/tables.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "bench/lemons/replay.h"
#include "domain/policy/config_duration.h"

namespace dhc::lemons {

namespace {

std::string told(const FaultTrace& trace) {
  std::size_t faults = 0;
  std::size_t repeaters = 0;
  std::size_t of_repeaters = 0;
  for (const auto& device : trace.broken) {
    faults += device.faults.size();
    if (device.faults.size() < 2) continue;
    ++repeaters;
    of_repeaters += device.faults.size();
  }
  return fmt::format(
      "{} GPU faults of {} among {} {} in {:.0f} days of service. {} of them broke more than once and had {} faults "
      "({:.0f} %).\n",
      faults, trace.broken.size(), trace.devices, trace.unit, trace.device_days, repeaters, of_repeaters,
      100.0 * static_cast<double>(of_repeaters) / static_cast<double>(std::max<std::size_t>(faults, 1)));
}

std::string cell(const FaultTrace& trace, const Outcome& outcome) {
  if (outcome.quarantined == 0) return " none |";
  return fmt::format(" {}: {}, {:.3f} %, {} |", outcome.quarantined, outcome.prevented,
                     100 * outcome.lost_days / trace.device_days, outcome.in_vain);
}

std::string table(const FaultTrace& trace, Ending ending) {
  std::string text = "| quarantineAbove |";
  std::string rule = "\n|---|";
  for (const auto half_life : kHalfLives) {
    text += fmt::format(" halfLife {} |", format_duration(half_life));
    rule += "---|";
  }
  text += rule + "\n";
  for (const double limit : kLimits) {
    text += fmt::format("| {} |", limit);
    for (const auto half_life : kHalfLives) {
      text += cell(trace, replay(trace, rules_of({half_life, limit}), ending));
    }
    text += "\n";
  }
  return text;
}

std::string bests(const FaultTrace& trace) {
  std::string text = "| at most lost | the choice |\n|---|---|\n";
  for (const double percent : {0.1, 0.25, 0.5, 1.0, 2.0, 5.0}) {
    const auto best = best_within(trace, percent / 100);
    text += fmt::format("| {} % | ", percent);
    text += best ? fmt::format("halfLife {}, quarantineAbove {} |\n", format_duration(best->half_life),
                               best->quarantine_above)
                 : std::string("none |\n");
  }
  return text;
}

}  // namespace

std::string tables_of(const FaultTrace& trace) {
  const RecoverRules any;
  return fmt::format("{}\nIncidents that end by the hold: {} without any quarantine.\n\n{}\n", told(trace),
                     replay(trace, any, Ending::Hold).incidents, table(trace, Ending::Hold)) +
         fmt::format("Incidents that end by evidence at the fault's recorded end: {} without any quarantine.\n\n{}\n",
                     replay(trace, any, Ending::Evidence).incidents, table(trace, Ending::Evidence)) +
         bests(trace);
}

}  // namespace dhc::lemons
