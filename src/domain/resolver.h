#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/device_key.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/resource_claim.h"

namespace dhc {

/// One device that one pod holds, and what the pod's own status says of it.
struct Holding {
  DeviceKey key;           ///< For an ambiguous device the last part is the kubelet's resource ID.
  bool inferred = false;   ///< Found by the name at the end of the resource ID.
  bool ambiguous = false;  ///< One of `candidates`, nobody knows which: the pod may be evicted, nothing may be tainted.
  std::optional<k8s::Health> reported;  ///< The worst of the pod's containers; absent: the kubelet says nothing.
  std::string message;                  ///< The driver's words with an Unhealthy report.
  std::string claim;                    ///< `namespace/name` of the claim; empty for a device-plugin device.
  std::string claim_uid;
  bool shared = false;  ///< The claim is not the pod's own.
  std::vector<DeviceKey> candidates;
  friend bool operator==(const Holding&, const Holding&) = default;
};

/// Finds a claim by namespace and name; null if it is not known.
using ClaimLookup = std::function<const k8s::ResourceClaim*(std::string_view ns, std::string_view name)>;

/// Every device that the pod holds, sorted by key: container entry -> pod claim -> allocation result -> device. A claim
/// that is not known yet gives no device. Devices with admin access are observed, not held, and are left out.
/// **Source:** kubelet buildResourceHealth (entry names and resource IDs), seen on 1.37.1 (`count: 2` differs only by
/// resource ID).
[[nodiscard]] std::vector<Holding> resolve_holdings(const k8s::Pod& pod, const ClaimLookup& find_claim);

/// True if `pod` owns the claim (made from a template): then the claim goes away with the pod.
[[nodiscard]] bool owns_claim(const k8s::Pod& pod, const k8s::ResourceClaim& claim);

/// The key of a claim in indexes.
[[nodiscard]] std::string claim_key(std::string_view ns, std::string_view name);

}  // namespace dhc
