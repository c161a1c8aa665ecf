#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "domain/policy/policy.h"
#include "domain/tuning/fault_trace.h"

namespace dhc::lemons {

using tuning::BrokenDevice;
using tuning::FaultTrace;

/// What ends an incident in the replay, after the fault's recorded end.
enum class Ending : std::uint8_t {
  Hold,      ///< Nobody speaks for the device: the hold.
  Evidence,  ///< It is known to be well at once: `healthyFor`.
};

/// What one choice would have done to a fleet.
struct Outcome {
  std::size_t incidents = 0;    ///< Without any quarantine: faults while one is open belong to it.
  std::size_t quarantined = 0;  ///< Devices.
  std::size_t prevented = 0;    ///< Incidents after the quarantine.
  std::size_t in_vain = 0;      ///< Devices that were quarantined and had no further incident in the trace.
  double lost_days = 0;         ///< In service, from the quarantine to the end: no operator acts.
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Replays the trace. Penalty, quarantine and hold are those of `domain/history`.
[[nodiscard]] Outcome replay(const FaultTrace& trace, const RecoverRules& rules, Ending ending);

/// The choices that are compared; a half-life of more than 30 days cannot be configured.
inline constexpr std::array kHalfLives = {std::chrono::hours(168), std::chrono::hours(336), std::chrono::hours(504),
                                          std::chrono::hours(720)};
inline constexpr std::array kLimits = {1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 4.0, 5.0};

/// A choice.
struct Choice {
  Millis half_life;
  double quarantine_above;
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// The default rules with this choice.
[[nodiscard]] RecoverRules rules_of(const Choice& choice);

/// Of the choices that lose at most this share of all device-days, whichever way incidents end, the one that leaves
/// the fewest incidents where they end by the hold; then the one with the fewest devices in vain, then the one with the
/// fewest quarantined; nothing: none prevents any.
[[nodiscard]] std::optional<Choice> best_within(const FaultTrace& trace, double share);

}  // namespace dhc::lemons
