#pragma once
#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// What becomes of our taint on each node.
void plan_nodes(const PlanInput& input, Speech& speech);

}  // namespace dhc::taint
