#include "k8s-client/model/pod.h"

namespace dhc::k8s {

bool can_hold_devices(const Pod& pod) {
  return !pod.claims.empty() || !pod.requests.empty() || !pod.allocated.empty() || pod.has_kept_condition;
}

}  // namespace dhc::k8s
