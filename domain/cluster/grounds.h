#pragma once
#include <map>
#include <string>

#include "base/now.h"
#include "domain/contract/device_key.h"
#include "domain/contract/owner_share.h"

namespace dhc {

class World;

/// What a device that has been bad since then has in common with others, and may have broken by: its node, and each
/// release of a driver or plugin that may have served it there when it broke. By the names of `ground_names`. A device
/// of the network is on no node.
[[nodiscard]] std::map<std::string, GroundShare> grounds_of(const DeviceKey& key, WallTime since, const World& world);

}  // namespace dhc
