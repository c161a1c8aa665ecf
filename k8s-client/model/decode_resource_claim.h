#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "k8s-client/model/json_reading.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/resource_claim.h"

namespace dhc::k8s {

/// A device that is not fully named must never become a key, or a taint that selects more than one device.
template <class Device>
bool require_device(const Device& device, Fault& fault) {
  return require(device.driver, fault, "driver") && require(device.pool, fault, "pool") &&
         require(device.device, fault, "device");
}

/// How many devices a request asks for, within what the API allows.
[[nodiscard]] std::int64_t device_count(std::int64_t count);

/// What a network device says of itself. **Source:** KEP-4817 NetworkDeviceData.
struct NetworkWords {
  std::string interface;
  std::vector<std::string> addresses;
  std::string hardware;
  /// In this order, with spaces between them.
  [[nodiscard]] std::string joined() const;
};

/// The part of a ResourceClaim that we read. **Source:** resource.k8s.io/v1.
bool read_resource_claim(JsonObject root, Fault& fault, const KeptFields& kept, ResourceClaim& claim);

}  // namespace dhc::k8s
