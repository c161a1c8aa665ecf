#pragma once
#include "reconcilers/hand_over/gates.h"
#include "reconcilers/hand_over/speech.h"

namespace dhc::hand_over {

/// Compares which nodes are to be handed over by a condition with our conditions that stand.
void plan_conditions(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned);

}  // namespace dhc::hand_over
