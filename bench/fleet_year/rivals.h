#pragma once
#include <map>
#include <memory>
#include <set>

#include "bench/fleet_year/contender.h"

namespace dhc::year {

/// How long a device has to be bad before a rival acts: as long as our default `after`.
inline constexpr Millis kRivalAfter = Seconds(60);

/// No tool: after `noticed_after` somebody deletes the pods that hold a bad device, and again after as long while it is
/// bad. Nobody keeps new pods off it.
[[nodiscard]] std::unique_ptr<Contender> make_nobody(Fleet& fleet, Millis noticed_after);

/// What tools for nodes do: the node of a bad device is cordoned and drained, by evictions that are tried again every
/// 5 s while a budget refuses them, and uncordoned when its last device is well.
/// **Source:** kubectl drain waits 5 s between evictions that are refused (drain.go, evictPods).
[[nodiscard]] std::unique_ptr<Contender> make_drain(Fleet& fleet);

/// A DeviceTaintRule with NoExecute for each bad device, which Kubernetes' own controller carries out; the rule goes
/// when the device is well.
[[nodiscard]] std::unique_ptr<Contender> make_no_execute(Fleet& fleet);

}  // namespace dhc::year
