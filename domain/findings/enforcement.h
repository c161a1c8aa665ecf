#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "domain/cluster/world.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The part of a policy's `enforceOn` that keeps it from enforcing somewhere.
enum class EnforceMiss : std::uint8_t {
  Node,       ///< `nodeSelector` does not select the node.
  Share,      ///< The device is not in the share, or its card is not known now.
  Namespace,  ///< `namespaces` does not name the pod's own namespace,
  Holder,     ///< or that of another pod that holds the device.
  Nobody,     ///< No pod holds the device, so that it is in no namespace.
  Gang,       ///< A pod of the gang that would go with it is elsewhere.
};

/// Whether a physical card is among the first `percent` of a hundred. A card that is in stays in at any higher share,
/// in every process and release: by a hash of its name, so that of few cards none may be in.
[[nodiscard]] bool is_in_share(const DeviceKey& card, std::int64_t percent);

/// What keeps the policy from tainting the device, or the node for it; none: nothing. A taint of ours that stands says
/// that its namespaces were looked at: who comes to hold the device afterwards changes nothing.
[[nodiscard]] std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world,
                                                      const DeviceKey& key);

/// What keeps the policy from acting on a pod that holds the device, or has held it; none: nothing. Whatever keeps it
/// from tainting the device does, so that no pod waits for a taint that will not come.
[[nodiscard]] std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world,
                                                      const k8s::Pod& pod, const DeviceKey& key);

/// The same with all that may be meant and would go along: each device that an ambiguous one may be, and the pods of
/// its gang where the policy evicts those together.
[[nodiscard]] std::optional<EnforceMiss> enforce_miss(const DevicePolicy& rules, const World& world,
                                                      const k8s::Pod& pod, const HeldDevice& held_device);

/// What a policy may do to the device or its node: as `effective_mode`, at most observe where `enforceOn` does not
/// hold. Of what is begun; a taint that stands is kept and removed by `effective_mode`.
[[nodiscard]] Mode mode_on(const DevicePolicy* rules, const Policy& policy, const World& world, const DeviceKey& key);

/// The same of a pod that holds the device.
[[nodiscard]] Mode mode_for(const DevicePolicy& rules, const Policy& policy, const World& world, const k8s::Pod& pod,
                            const DeviceKey& key);

/// The miss in words, for people.
[[nodiscard]] std::string words_of(EnforceMiss miss, const DevicePolicy& rules);

}  // namespace dhc
