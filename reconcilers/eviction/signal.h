#pragma once
#include "base/error.h"
#include "domain/scene.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/resource_claim.h"
#include "reconcilers/eviction/action.h"

namespace dhc::eviction {

/// What the eviction of this exposure's pod rests on.
[[nodiscard]] Signal signal_of(const Exposure& exposure, const World& world);

/// Whether the pod, as it was just read, is still the one to evict. NotFound: it has gone, another has its name.
/// Outdated: it is terminating, has ended or has opted out.
[[nodiscard]] Status judge_pod(const EvictPod& action, const k8s::Pod& fresh);

/// Whether the signal still stands in what was just read: the pod that reports the device, and the claim through which
/// it is held (null for a device-plugin device). Outdated, with what was found instead, if it does not.
[[nodiscard]] Status judge_signal(const EvictPod& action, const k8s::Pod& reporter, const k8s::ResourceClaim* claim);

}  // namespace dhc::eviction
