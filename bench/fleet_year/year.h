#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "bench/fleet_year/contender.h"

namespace dhc::year {

/// One run of one contender.
struct Run {
  FleetShape shape;
  double filled = 0.85;  ///< What is asked for, as a share of the fleet's GPUs.
  Spread spread;
  Millis noticed_after{0};  ///< When people notice where nobody else does.
  std::uint64_t seed = 1;
};

/// What became of a fleet.
struct Year {
  Counts counts;
  std::array<std::array<double, kCauses>, kUses> hours = {};  ///< GPU-hours by use and cause.
  double all_hours = 0;                                       ///< The devices times the time.
  std::uint64_t moments = 0;                                  ///< At which something was done.
  Effort effort;
  double seconds = 0;  ///< Of this machine's processor.

  [[nodiscard]] double of(Use use, Cause cause) const {
    return hours[static_cast<std::size_t>(use)][static_cast<std::size_t>(cause)];
  }
  [[nodiscard]] double of(Use use) const { return of(use, Cause::Device) + of(use, Cause::Server); }
  /// GPU-hours that nobody could use, or used in vain.
  [[nodiscard]] double lost(Cause cause) const {
    return of(Use::Redone, cause) + of(Use::Moving, cause) + of(Use::Stuck, cause) + of(Use::Broken, cause) +
           of(Use::Barred, cause);
  }
};

/// Lets the faults of the trace befall the fleet while the contender acts, from moment to moment in virtual time.
[[nodiscard]] Year play(const Run& run, const FaultTrace& trace, Kind contender);
/// The same with a demand of one's own, and a contender made for the fleet.
[[nodiscard]] Year play(const Run& run, const FaultTrace& trace, const Demand& demand,
                        const std::function<std::unique_ptr<Contender>(Fleet&)>& make);

}  // namespace dhc::year
