#pragma once
#include <optional>

#include "base/error.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/resource_claim.h"
#include "k8s-client/model/resource_slice.h"
#include "reconcilers/eviction/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What the eviction of this affected pod rests on.
[[nodiscard]] Signal signal_of(const AffectedPod& affected, const World& world);

/// Whether the pod, as it was just read, is still the one to evict. NotFound: it has gone, another has its name.
/// Outdated: it is terminating, has ended, has opted out, or has time left by what it answers to its notice.
[[nodiscard]] Status judge_pod(const EvictPod& action, const k8s::Pod& fresh);

/// What was read in the moment before an eviction.
struct JudgedObjects {
  k8s::Pod reporter = {};                        ///< The pod itself, or the signal's witness.
  std::optional<k8s::ResourceClaim> claim = {};  ///< Through which the device is held; none for a device plugin's.
  std::optional<k8s::ResourceSlice> slice = {};  ///< That publishes it, where a taint in it is the signal.
};

/// Whether the signal still stands in what was just read. Outdated, with what was found instead, if it does not.
[[nodiscard]] Status judge_signal(const EvictPod& action, const JudgedObjects& fresh);

}  // namespace dhc::eviction
