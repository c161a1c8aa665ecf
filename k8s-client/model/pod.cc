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

bool asks_for_devices(const Pod& pod) { return !pod.claims.empty() || !pod.requests.empty() || !pod.allocated.empty(); }

bool is_kept_whole(const Pod& pod) {
  return asks_for_devices(pod) || pod.is_marked || pod.has_kept_condition || pod.shows_kept_annotation;
}

}  // namespace dhc::k8s
