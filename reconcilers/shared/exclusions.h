#pragma once
#include <optional>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// Why this pod is never evicted as things are; none if nothing but time and limits stand in the way.
/// **Source:** issue lists of drain tools: mirror and DaemonSet pods come back to the same node, bare pods do not come
/// back at all.
[[nodiscard]] std::optional<HoldReason> excluded_because(const AffectedPod& affected, const PlanInput& input);

/// That the pod's workload, or an image that it runs, is suspected of breaking devices of this driver or resource: it
/// is given no other one.
[[nodiscard]] std::optional<HoldReason> suspected(const k8s::Pod& pod, const std::string& scope,
                                                  const PlanInput& input);

/// That the pod, one of the owners above it or its Namespace has opted out, or that one of them is not known just now.
[[nodiscard]] std::optional<HoldReason> opted_out(const k8s::Pod& pod, const World& world);

/// That an owner above the pod, of a kind that is not watched, was read too long ago to rest an eviction on it.
[[nodiscard]] std::optional<HoldReason> owner_word_too_old(const k8s::Pod& pod, const World& world, const Now& now);

}  // namespace dhc
