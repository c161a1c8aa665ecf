#pragma once
#include <optional>

#include "app/losses/device_seconds.h"
#include "domain/cluster/world.h"
#include "domain/incidents/incident_store.h"

namespace dhc {

/// Why the device is lost now; none: it is not, as far as is known. A node with an incident of its own is no device.
[[nodiscard]] std::optional<LossCause> loss_of(const DeviceKey& key, const World& world,
                                               const IncidentStore& incidents);

/// Whether its incident goes on; where there is none, whether it is anything but Healthy.
[[nodiscard]] bool is_bad_still(const DeviceKey& key, const World& world, const IncidentStore& incidents);

/// Since when the device has been bad: that of its open incident, else of the kubelet's word; none: it is not.
[[nodiscard]] std::optional<WallTime> bad_since(const DeviceKey& key, const World& world,
                                                const IncidentStore& incidents);

}  // namespace dhc
