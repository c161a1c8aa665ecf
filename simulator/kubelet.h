#pragma once
#include "simulator/state.h"

namespace dhc::sim {

/// Writes the pod's `allocatedResourcesStatus` as the kubelet sees its devices now.
void write_health(State& state, Machine& machine, KubeletPod& known, const Json& pod, Json& status);

/// Has every pod on the node write its health after `after`, unless an earlier write is due.
void refresh_all(State& state, Machine& machine, Millis after);

/// The same for the pods that hold one device.
void refresh_holders(State& state, Machine& machine, const std::string& device, Millis after);

/// Ends the pod's containers with that exit code: the phase follows, or a restart.
void end_containers(State& state, const Json& pod, int exit_code);

}  // namespace dhc::sim
