#include "reconcilers/hand_over/execute.h"

#include <utility>

#include "reconcilers/hand_over/build.h"

namespace dhc::hand_over {

Status execute(const ApplyNodeConditions& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_conditions(action), client, std::move(stop));
}

}  // namespace dhc::hand_over
