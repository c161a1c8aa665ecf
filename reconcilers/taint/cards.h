#pragma once
#include <cstddef>

#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// One rule for each other device of a card of which a device is tainted by an incident of its own, as long as that
/// stands: the whole GPU and its MIG devices fail together. It takes nothing from caps, which count cards.
void plan_cards(const PlanInput& input, Speech& speech);

/// How many other devices of the device's card have such a rule now.
[[nodiscard]] std::size_t tainted_with(const PlanInput& input, const DeviceKey& key);

}  // namespace dhc::taint
