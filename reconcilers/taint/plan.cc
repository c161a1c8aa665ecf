#include "reconcilers/taint/plan.h"

#include "reconcilers/taint/cards.h"
#include "reconcilers/taint/nodes.h"
#include "reconcilers/taint/rules.h"
#include "reconcilers/taint/strays.h"

namespace dhc::taint {

TaintPlan plan(const PlanInput& input) {
  Speech speech(input);
  plan_rules(input, speech);
  plan_cards(input, speech);
  plan_nodes(input, speech);
  plan_strays(input, speech);
  return speech.done();
}

}  // namespace dhc::taint
