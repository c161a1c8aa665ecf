#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"
#include "domain/contract/reasons.h"
#include "domain/contract/subject.h"

namespace dhc {

/// What we would do, do, or do not do about one subject, and why. At most one for each (subject, device, reason), but
/// for a node that is handed over by a condition and by an object: it has one for each.
struct Verdict {
  Subject subject;
  std::string device;          ///< As `to_string(DeviceKey)`; empty if no single device is meant.
  std::string policy;          ///< The policy that matched; empty for verdicts about nodes.
  std::string_view mode = {};  ///< What that policy may do here, as the controller caps it: a word of Mode, or empty.
  std::string_view gate = {};  ///< Of an eviction: the name of the gate that holds it, or empty.
  Reason reason = Reason::WaitingForWindow;
  std::string message;              ///< For people: what, which numbers, what would change it.
  WallTime since;                   ///< When the device's state began, or the fact was first seen.
  std::optional<WallTime> next_at;  ///< When the next step is due, if time alone brings it.
  /// Of a pod: the containers whose status names the device, sorted; empty: none is known.
  std::vector<std::string> containers = {};
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// A reason with its sentence, and until when it holds if time alone ends it.
struct HoldReason {
  Reason reason = Reason::WaitingForWindow;
  std::string message;
  std::optional<MonoTime> until;
};

}  // namespace dhc
