#pragma once
#include <span>

#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"

namespace dhc {

/// Gives each verdict about a pod's device the containers that hold the device.
void name_containers(std::span<Verdict> verdicts, const World& world);

}  // namespace dhc
