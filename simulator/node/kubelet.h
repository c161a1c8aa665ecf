#pragma once
#include "simulator/controllers/state.h"

namespace dhc::sim {

/// Writes the pod's `allocatedResourcesStatus` as the kubelet sees its devices now.
void write_health(State& state, Machine& machine, KubeletPod& known, const Json& pod, Json& status);

/// When the node's kubelet looks at its pods' devices next: between two looks it sees nothing, whatever is reported.
/// **Source:** a sync waits for PLEG's next relist (pod_workers.go, GetNewerThan); seen on 1.37.1.
[[nodiscard]] MonoTime next_pod_sync(const State& state);

/// Has every pod on the node write its health at `due`, unless an earlier write is due.
void refresh_all(Machine& machine, MonoTime due);

/// Has the pods that hold one device write its health at the kubelet's next look.
void refresh_holders(State& state, Machine& machine, const std::string& device);

/// Has the kubelet write capacity and allocatable at `due`, unless an earlier write is due.
void node_status_due(Machine& machine, MonoTime due);

/// The kubelet forgets its plugins until they register again. **Source:** seen on 1.37.1: first a node without their
/// devices, then pods that say Healthy.
void restart_kubelet(State& state, Machine& machine, Millis plugins_register_after);

/// Ends the pod's containers with that exit code: the phase follows, or a restart.
void end_containers(State& state, const Json& pod, int exit_code);

/// The pod's containers have been killed and run again, since now.
void restart_containers(State& state, const Json& pod);

}  // namespace dhc::sim
