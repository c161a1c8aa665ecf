#pragma once
#include "reconcilers/hand_over/gates.h"
#include "reconcilers/hand_over/speech.h"

namespace dhc::hand_over {

/// Compares which objects are to be there with those that were made. One is written down before it is asked for, and
/// made once for an incident; when none of its incidents is a ground any more it is deleted, or left.
void plan_objects(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned);

}  // namespace dhc::hand_over
