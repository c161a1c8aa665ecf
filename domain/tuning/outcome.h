#pragma once
#include <cstddef>

#include "domain/tuning/life.h"

namespace dhc::tuning {

/// What one choice would have done to a fleet.
struct Outcome {
  std::size_t first = 0;        ///< Devices that pods met bad; no choice prevents it.
  std::size_t repeats = 0;      ///< Times that a pod met a bad device that had failed before.
  std::size_t same_fault = 0;   ///< Of these: the device was given back before its repair.
  std::size_t unsure = 0;       ///< And times at which nobody has said whether it was still bad; in none of the above.
  std::size_t incidents = 0;    ///< Each takes a pod away.
  std::size_t passing = 0;      ///< Times that the device was well again before the incident opened.
  std::size_t quarantined = 0;  ///< Devices; no operator acts.
  Millis held_well{0};          ///< In service and well, and kept from pods; all devices together.
  Millis waited{0};             ///< Pods on a bad device, until the incident opened or the device was well.
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

[[nodiscard]] Outcome outcome_of(const FaultTrace& trace, const Choice& choice, Witness witness);

/// The share of the fleet's time that was held although well.
[[nodiscard]] double share_held(const FaultTrace& trace, const Outcome& outcome);

/// Whether the trace is long enough for figures of a year: a month.
[[nodiscard]] bool tells_of_years(const FaultTrace& trace);

/// Repeat failures in a year of 365 days; 0 if it does not tell of years.
[[nodiscard]] double repeats_a_year(const FaultTrace& trace, const Outcome& outcome);

}  // namespace dhc::tuning
