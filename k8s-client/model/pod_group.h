#pragma once
#include "k8s-client/model/meta.h"

namespace dhc::k8s {

/// The part of PodGroup that we read. **Source:** scheduling.k8s.io: v1alpha2 of 1.36, v1alpha3 and v1beta1 of 1.37.
struct PodGroup {
  Meta meta;
  bool is_indivisible = false;  ///< `spec.disruptionMode` is `all` (1.36: `PodGroup`): its pods go together, or none.
  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

}  // namespace dhc::k8s
