#include "reconcilers/taint/plan.h"

#include "reconcilers/taint/nodes.h"
#include "reconcilers/taint/rules.h"

namespace dhc::taint {

TaintPlan plan(const Scene& scene) {
  Speech speech(scene);
  plan_rules(scene, speech);
  plan_nodes(scene, speech);
  return speech.done();
}

}  // namespace dhc::taint
