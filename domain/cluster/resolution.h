#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/moment.h"
#include "base/shared_text.h"
#include "base/slim_vector.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/resource_claim.h"

namespace dhc {

/// One device that one pod holds, and what the pod's own status says of it.
struct HeldDevice {
  DeviceKey key;           ///< Of an ambiguous device: of this report of this pod, no other's.
  bool inferred = false;   ///< Found by the name at the end of the resource ID.
  bool ambiguous = false;  ///< One of `candidates`, nobody knows which: the pod may be evicted, nothing may be tainted.
  std::optional<k8s::Health> reported;     ///< The worst of the pod's containers; absent: the kubelet says nothing.
  SharedText message;                      ///< The driver's words with an Unhealthy report.
  SharedText other_word = {};              ///< The kubelet's word, of any container, that is none of the three.
  SlimVector<SharedText> containers = {};  ///< Those of the pod whose status names the device, sorted.
  std::int64_t restarts = 0;               ///< How often these have been restarted, added up.
  SharedText claim;                        ///< `namespace/name` of the claim; empty for a device-plugin device.
  SharedText claim_uid;
  bool shared = false;  ///< The claim is not the pod's own.
  SlimVector<DeviceKey> candidates;
  std::optional<Moment> seen_at = {};  ///< Since when it has been known to be held; the World's affair.
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

/// Why a report of the kubelet is laid on no device.
struct ReportDoubt {
  enum class Kind : std::uint8_t {
    ClaimBehind,  ///< The claim as known is not the one that the kubelet speaks of: its watch is behind.
    Observed,     ///< It may mean a device that the pod only observes by adminAccess.
    Incomplete,   ///< The kubelet names fewer devices than the claim has: some have the same resource ID.
  };
  Kind kind = Kind::ClaimBehind;
  std::string claim;  ///< `namespace/name`.
  DeviceKey about;    ///< Any device that may be meant, for the choice of a policy.
  std::string why;    ///< A sentence.
  Moment since = {};  ///< Since when it has been so; the World's affair.
  friend bool operator==(const ReportDoubt&, const ReportDoubt&) = default;
};

/// What a pod holds and what could not be told.
struct Resolution {
  SlimVector<HeldDevice> held_devices;  ///< Sorted by key.
  SlimVector<ReportDoubt> doubts;       ///< Of claims that are behind only where the kubelet says Unhealthy.
  std::set<std::string> behind;         ///< `namespace/name` of claims of which nothing may be concluded.
};

/// Finds a claim by namespace and name; null if it is not known.
using ClaimLookup = std::function<const k8s::ResourceClaim*(std::string_view ns, std::string_view name)>;

/// Every device that the pod holds: container entry -> pod claim -> allocation result -> device. A claim that is not
/// known yet, or contradicts what the kubelet says, gives no device. Devices with admin access are observed, not held,
/// and are left out; the kubelet reports them all the same.
/// **Source:** kubelet buildResourceHealth (entry names and resource IDs: `driver/pool/device` where the driver gives
/// no CDI name; of devices with one ID only the first is told), seen on 1.37.1 (`count: 2` differs only by resource
/// ID).
[[nodiscard]] Resolution resolve_held_devices(const k8s::Pod& pod, const ClaimLookup& find_claim);

/// This device among `held_devices`, which are sorted by key; null if there is none.
[[nodiscard]] const HeldDevice* find_held_device(std::span<const HeldDevice> held_devices, const DeviceKey& key);

/// True if `pod` owns the claim (made from a template): then the claim goes away with the pod.
[[nodiscard]] bool owns_claim(const k8s::Pod& pod, const k8s::ResourceClaim& claim);

/// The key of a claim in indexes.
[[nodiscard]] std::string claim_key(std::string_view ns, std::string_view name);

}  // namespace dhc
