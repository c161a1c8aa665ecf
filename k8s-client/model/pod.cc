#include "k8s-client/model/pod.h"

namespace dhc::k8s {

std::string_view to_string(Health health) {
  switch (health) {
    case Health::Healthy:
      return "Healthy";
    case Health::Unknown:
      return "Unknown";
    case Health::Unhealthy:
      return "Unhealthy";
  }
  return "Unknown";
}

bool can_hold_devices(const Pod& pod) {
  return !pod.claims.empty() || !pod.requests.empty() || !pod.allocated.empty() || pod.has_kept_condition;
}

}  // namespace dhc::k8s
