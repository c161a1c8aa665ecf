#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "k8s-client/model/decode_resource_claim.h"
#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"
#include "k8s-client/model/proto_scheduling.h"

// **Source:** resource/v1 generated.proto, the messages that the functions name.
namespace dhc::k8s::proto {

namespace {

// DeviceRequestAllocationResult.
bool read_result(const Value& value, Fault& fault, AllocationResult& result) {
  std::vector<std::string> failure_conditions;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, result.request) || fault.in("request");
      case 2:
        return read_name(field, fault, result.driver) || fault.in("driver");
      case 3:
        return read_name(field, fault, result.pool) || fault.in("pool");
      case 4:
        return read_name(field, fault, result.device) || fault.in("device");
      case 5:
        return read_bool(field, fault, result.admin_access) || fault.in("adminAccess");
      case 6:
        return read_toleration(field, fault, result.tolerations) || fault.in("tolerations");
      case 7:
        return read_one_name(field, fault, result.binding_conditions) || fault.in("bindingConditions");
      case 8:
        return read_one_name(field, fault, failure_conditions) || fault.in("bindingFailureConditions");
      default:
        return true;
    }
  });
  std::ranges::move(failure_conditions, std::back_inserter(result.binding_conditions));
  return read && require_device(result, fault);
}

// AllocationResult and DeviceAllocationResult.
bool read_allocation(const Value& value, Fault& fault, ResourceClaim& claim) {
  claim.allocated = true;
  return each_field(value, fault, [&](std::uint32_t tag, const Value& devices) {
    if (tag != 1) return true;
    return each_field(devices, fault, [&](std::uint32_t part, const Value& field) {
      return part != 1 || read_item(field, fault, claim.results, read_result) || fault.in("results");
    });
  });
}

// ResourceClaimConsumerReference.
bool read_consumer(const Value& value, Fault& fault, ClaimConsumer& consumer) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, consumer.api_group) || fault.in("apiGroup");
      case 3:
        return read_name(field, fault, consumer.resource) || fault.in("resource");
      case 4:
        return read_name(field, fault, consumer.name) || fault.in("name");
      case 5:
        return read_name(field, fault, consumer.uid) || fault.in("uid");
      default:
        return true;
    }
  });
}

// NetworkDeviceData.
bool read_network(const Value& value, Fault& fault, NetworkWords& network) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, network.interface) || fault.in("interfaceName");
    if (tag == 2) return read_one_name(field, fault, network.addresses) || fault.in("ips");
    if (tag == 3) return read_name(field, fault, network.hardware) || fault.in("hardwareAddress");
    return true;
  });
}

// AllocatedDeviceStatus.
bool read_device_status(const Value& value, Fault& fault, ClaimDeviceStatus& device) {
  NetworkWords network;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, device.driver) || fault.in("driver");
      case 2:
        return read_name(field, fault, device.pool) || fault.in("pool");
      case 3:
        return read_name(field, fault, device.device) || fault.in("device");
      case 4:
        return read_item(field, fault, device.conditions, read_condition) || fault.in("conditions");
      case 6:
        return read_network(field, fault, network) || fault.in("networkData");
      default:
        return true;
    }
  });
  device.network = network.joined();
  return read && require_device(device, fault);
}

// A zero is what Go writes for a count that is absent.
bool read_count(const Value& value, Fault& fault, DeviceRequest& request) {
  std::int64_t count = 0;
  if (!read_number(value, fault, count)) return false;
  if (count != 0) request.count = device_count(count);
  return true;
}

// ExactDeviceRequest and DeviceSubRequest, which number their fields differently.
bool read_exactly(const Value& value, Fault& fault, DeviceRequest& request, std::uint32_t class_tag,
                  std::uint32_t count_tag) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == class_tag) return read_name(field, fault, request.device_class) || fault.in("deviceClassName");
    if (tag == count_tag) return read_count(field, fault, request) || fault.in("count");
    return true;
  });
}

// DeviceRequest; of `firstAvailable` the first is read.
bool read_device_request(const Value& value, Fault& fault, DeviceRequest& request) {
  bool first = true;
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, request.name) || fault.in("name");
    if (tag == 2) return read_exactly(field, fault, request, 1, 4) || fault.in("exactly");
    if (tag != 3 || !std::exchange(first, false)) return true;
    return read_exactly(field, fault, request, 2, 5) || fault.in("firstAvailable");
  });
}

// ResourceClaimSpec and DeviceClaim.
bool read_claim_spec(const Value& value, Fault& fault, std::vector<DeviceRequest>& requests) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& devices) {
    if (tag != 1) return true;
    return each_field(devices, fault, [&](std::uint32_t part, const Value& field) {
      return part != 1 || read_item(field, fault, requests, read_device_request) || fault.in("requests");
    });
  });
}

// ResourceClaimStatus.
bool read_claim_status(const Value& value, Fault& fault, ResourceClaim& claim) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_allocation(field, fault, claim) || fault.in("allocation");
    if (tag == 2) return read_item(field, fault, claim.reserved_for, read_consumer) || fault.in("reservedFor");
    if (tag == 4) return read_item(field, fault, claim.devices, read_device_status) || fault.in("devices");
    return true;
  });
}

}  // namespace

bool read_resource_claim(std::string_view message, Fault& fault, const KeptFields& kept, ResourceClaim& claim) {
  std::vector<DeviceRequest> requests;
  const auto read_field = [&](std::uint32_t tag, const Value& value) {
    if (tag == 2) return read_claim_spec(value, fault, requests) || fault.in("spec");
    if (tag == 3) return read_claim_status(value, fault, claim) || fault.in("status");
    return true;
  };
  const bool read = read_root(message, fault, kept, Kind::ResourceClaim, claim.meta, read_field);
  claim.requests = Shared(std::move(requests));
  return read;
}

}  // namespace dhc::k8s::proto
