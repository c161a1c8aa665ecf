#include "k8s-client/model/pod.h"

#include <algorithm>

namespace dhc::k8s {

bool can_hold_devices(const Pod& pod) {
  return !pod.claims.empty() || !pod.requests.empty() || !pod.allocated.empty() ||
         std::ranges::find(pod.conditions, kDeviceUnhealthyCondition, &Condition::type) != pod.conditions.end();
}

}  // namespace dhc::k8s
