#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "k8s-client/model/meta.h"
#include "k8s-client/model/scheduling.h"
#include "k8s-client/model/shared.h"

namespace dhc::k8s {

/// What a claim asks for. **Source:** resource.k8s.io/v1 DeviceRequest.
struct DeviceRequest {
  std::string name;
  std::string device_class;  ///< Of `firstAvailable` that of the first.
  std::int64_t count = 1;
  friend auto operator<=>(const DeviceRequest&, const DeviceRequest&) = default;
};

/// One allocated device of a claim. **Source:** resource.k8s.io/v1 DeviceRequestAllocationResult.
struct AllocationResult {
  SharedText request;  ///< `request` or `request/subrequest`.
  SharedText driver;
  SharedText pool;
  SharedText device;
  bool admin_access = false;
  std::vector<std::string> binding_conditions = {};  ///< bindingConditions and bindingFailureConditions: never evidence
                                                     ///< of health. **Source:** KEP-5007.
  std::vector<Toleration> tolerations = {};          ///< The request's, when the device was allocated.
  friend bool operator==(const AllocationResult&, const AllocationResult&) = default;
};

/// What the driver says of one allocated device. **Source:** KEP-4817 AllocatedDeviceStatus.
struct ClaimDeviceStatus {
  SharedText driver;
  SharedText pool;
  SharedText device;
  std::vector<Condition> conditions;
  std::string network = {};  ///< networkData in words: interface, addresses, hardware address; empty if there is none.
  friend bool operator==(const ClaimDeviceStatus&, const ClaimDeviceStatus&) = default;
};

/// A consumer of the claim.
struct ClaimConsumer {
  SharedText api_group;  ///< Empty for pods.
  SharedText resource;   ///< `pods` for pods.
  SharedText name;
  SharedText uid;
  friend bool operator==(const ClaimConsumer&, const ClaimConsumer&) = default;
};

/// The part of ResourceClaim that we read.
struct ResourceClaim {
  Meta meta;
  Shared<std::vector<DeviceRequest>> requests;
  bool allocated = false;
  std::vector<AllocationResult> results;
  std::vector<ClaimConsumer> reserved_for;
  std::vector<ClaimDeviceStatus> devices;
  friend bool operator==(const ResourceClaim&, const ResourceClaim&) = default;
};

}  // namespace dhc::k8s
