#include "domain/disruption.h"

#include <algorithm>

#include "domain/names.h"

namespace dhc {

namespace {

bool is_disruption(const k8s::Condition& condition) {
  return condition.type == kDisruptionTarget && condition.status == "True";
}

}  // namespace

bool was_disrupted(const k8s::Pod& pod) { return std::ranges::any_of(pod.conditions, is_disruption); }

bool was_evicted(const k8s::Pod& pod) {
  return std::ranges::any_of(pod.conditions, [](const k8s::Condition& condition) {
    return is_disruption(condition) && condition.reason == kEvictedByApi;
  });
}

}  // namespace dhc
