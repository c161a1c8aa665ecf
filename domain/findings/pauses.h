#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"
#include "domain/cluster/world.h"
#include "domain/policy/pause.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The pause that keeps this pod from being evicted, and its Job from a credit, on account of the device: of
/// everything, or of a part that the pod's node and namespace and the device's driver or resource belong to. Of several
/// the one that ends last. Its words name no other namespace than the pod's: its tenant reads them.
[[nodiscard]] std::optional<Pause> pause_for(const World& world, const Policy& policy, WallTime now,
                                             const k8s::Pod& pod, const DeviceKey& key);

/// The pause that keeps the device, or its node for it, from being newly tainted. A pause of namespaces does while a
/// pod of them holds the device.
[[nodiscard]] std::optional<Pause> pause_on(const World& world, const Policy& policy, WallTime now,
                                            const DeviceKey& key);

/// The pause that keeps a Job of this namespace as it is, whatever its pods hold: of everything, or one that names the
/// namespace.
[[nodiscard]] std::optional<Pause> pause_in(const Policy& policy, WallTime now, std::string_view ns);

/// Every pause of a part that holds at `now`: those of ControllerLimits, then those of annotations by name.
[[nodiscard]] std::vector<Pause> standing_pauses(const Policy& policy, WallTime now);

}  // namespace dhc
