#include "reconcilers/hand_over/plan.h"

#include "reconcilers/hand_over/conditions.h"
#include "reconcilers/hand_over/objects.h"

namespace dhc::hand_over {

Plan plan(const PlanInput& input) {
  Plan planned;
  Gates gates(input);
  Speech speech(input, planned);
  planned.handed_over = gates.handed_over();
  plan_conditions(input, gates, speech, planned);
  plan_objects(input, gates, speech, planned);
  planned.wake_at = speech.wake().at();
  return planned;
}

}  // namespace dhc::hand_over
