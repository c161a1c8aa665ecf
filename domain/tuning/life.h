#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "domain/policy/policy.h"
#include "domain/tuning/fault_trace.h"

namespace dhc::tuning {

/// Who speaks of a device that our taint keeps pods off.
enum class Witness : std::uint8_t {
  Nobody,  ///< As with most drivers: the hold alone ends an incident.
  Driver,  ///< Its driver says when it is well again: `healthyFor` after that the incident ends.
};

/// One choice of what decides about single devices.
struct Choice {
  Millis after{0};
  RecoverRules recover;
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// A pod is on a device that is bad, or gets it.
struct Hit {
  WallTime at;
  WallTime over;            ///< When the device is well again.
  bool is_first = false;    ///< The device's first in the trace: no choice prevents it.
  bool same_fault = false;  ///< The device was given back while it was bad.
  bool is_sure = true;      ///< False: nobody has said whether it was still bad then.
  Millis waited{0};         ///< How long the pod was there until the incident opened, or the device was well.
  bool is_passing = false;  ///< The device was well before the incident opened.
};

/// What becomes of one device under a choice.
struct Life {
  std::vector<Hit> hits;
  std::vector<Span> held;  ///< Incidents: from their opening until the device is given back, or the trace ends.
  bool quarantined = false;
};

/// Plays a device's faults. Pods want it whenever it is not held; what is held loses its pods at once. When an incident
/// opens and ends, and when it makes a lemon, is decided by `domain/history`.
[[nodiscard]] Life life_of(const BrokenDevice& device, const FaultTrace& trace, const Choice& choice, Witness witness);

[[nodiscard]] std::string_view to_string(Witness witness);

}  // namespace dhc::tuning
