#include "reconcilers/incident_state/execute.h"

#include <utility>

#include "reconcilers/incident_state/build.h"

namespace dhc::incident_state {

Status execute(const WriteState& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_state(action), client, std::move(stop));
}

}  // namespace dhc::incident_state
