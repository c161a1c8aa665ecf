#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "domain/device_key.h"

namespace dhc::eviction {

/// Evict one pod through the Eviction API; the UID is a precondition (invariant I1).
struct EvictPod {
  std::string ns;
  std::string name;
  std::string uid;
  std::optional<std::int64_t> grace_period_seconds;
  std::string shared_claim_uid = {};  ///< Set when all holders of a shared claim are evicted together.
  DeviceKey key;                      ///< The bad device.
  // for logs and metrics
  std::string device;
  std::string policy;
  friend bool operator==(const EvictPod&, const EvictPod&) = default;
};

}  // namespace dhc::eviction
