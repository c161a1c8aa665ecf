#include "k8s-client/model/decode_resource_claim.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "k8s-client/model/decode_meta.h"
#include "k8s-client/model/decode_scheduling.h"

namespace dhc::k8s {

namespace {

/// **Source:** resource.k8s.io/v1 AllocationResultsMaxSize.
constexpr std::int64_t kMostDevices = 32;

bool read_result(JsonValue value, Fault& fault, AllocationResult& result) {
  std::vector<std::string> failure_conditions;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "request") return read_name(field, fault, result.request) || fault.in(key);
    if (key == "driver") return read_name(field, fault, result.driver) || fault.in(key);
    if (key == "pool") return read_name(field, fault, result.pool) || fault.in(key);
    if (key == "device") return read_name(field, fault, result.device) || fault.in(key);
    if (key == "adminAccess") return read_bool(field, fault, result.admin_access) || fault.in(key);
    if (key == "bindingConditions") return read_names(field, fault, result.binding_conditions) || fault.in(key);
    if (key == "bindingFailureConditions") return read_names(field, fault, failure_conditions) || fault.in(key);
    if (key == "tolerations") return read_tolerations(field, fault, result.tolerations) || fault.in(key);
    return true;
  });
  std::ranges::move(failure_conditions, std::back_inserter(result.binding_conditions));
  return read && require_device(result, fault);
}

bool read_devices(JsonValue value, Fault& fault, std::vector<AllocationResult>& results) {
  results.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "results" || read_list(field, fault, results, read_result) || fault.in(key);
  });
}

bool read_allocation(JsonValue value, Fault& fault, ResourceClaim& claim) {
  claim.results.clear();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  claim.allocated = !null;
  if (null) return true;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "devices" || read_devices(field, fault, claim.results) || fault.in(key);
  });
}

bool read_consumer(JsonValue value, Fault& fault, ClaimConsumer& consumer) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "apiGroup") return read_name(field, fault, consumer.api_group) || fault.in(key);
    if (key == "resource") return read_name(field, fault, consumer.resource) || fault.in(key);
    if (key == "name") return read_name(field, fault, consumer.name) || fault.in(key);
    if (key == "uid") return read_name(field, fault, consumer.uid) || fault.in(key);
    return true;
  });
}

bool read_network(JsonValue value, Fault& fault, std::string& words) {
  words.clear();
  bool null = false;
  if (!read_null(value, fault, null)) return false;
  if (null) return true;
  NetworkWords network;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "interfaceName") return read_name(field, fault, network.interface) || fault.in(key);
    if (key == "hardwareAddress") return read_name(field, fault, network.hardware) || fault.in(key);
    if (key == "ips") return read_names(field, fault, network.addresses) || fault.in(key);
    return true;
  });
  words = network.joined();
  return read;
}

bool read_device_status(JsonValue value, Fault& fault, ClaimDeviceStatus& device) {
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "driver") return read_name(field, fault, device.driver) || fault.in(key);
    if (key == "pool") return read_name(field, fault, device.pool) || fault.in(key);
    if (key == "device") return read_name(field, fault, device.device) || fault.in(key);
    if (key == "conditions") return read_list(field, fault, device.conditions, read_condition) || fault.in(key);
    if (key == "networkData") return read_network(field, fault, device.network) || fault.in(key);
    return true;
  });
  return read && require_device(device, fault);
}

// What is asked for stands in `exactly`, in v1beta1 beside the name; of `firstAvailable` the first is read.
bool read_request_field(std::string_view key, JsonValue field, Fault& fault, DeviceRequest& request) {
  if (key == "deviceClassName") return read_name(field, fault, request.device_class) || fault.in(key);
  if (key != "count") return true;
  std::optional<std::int64_t> count;
  if (!read_integer(field, fault, count)) return fault.in(key);
  request.count = device_count(count.value_or(1));
  return true;
}

bool read_exactly(JsonValue value, Fault& fault, DeviceRequest& request) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return read_request_field(key, field, fault, request);
  });
}

bool read_request(JsonValue value, Fault& fault, DeviceRequest& request) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "name") return read_name(field, fault, request.name) || fault.in(key);
    if (key == "exactly") return read_exactly(field, fault, request) || fault.in(key);
    if (key != "firstAvailable") return read_request_field(key, field, fault, request);
    bool first = true;
    return each_item(
               field, fault,
               [&](JsonValue item) { return !std::exchange(first, false) || read_exactly(item, fault, request); }) ||
           fault.in(key);
  });
}

bool read_spec(JsonValue value, Fault& fault, ResourceClaim& claim) {
  std::vector<DeviceRequest> requests;
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue devices) {
    if (key != "devices") return true;
    return each_field(devices, fault,
                      [&](std::string_view part, JsonValue list) {
                        return part != "requests" || read_list(list, fault, requests, read_request) || fault.in(part);
                      }) ||
           fault.in(key);
  });
  claim.requests = Shared(std::move(requests));
  return read;
}

bool read_status(JsonValue value, Fault& fault, ResourceClaim& claim) {
  auto requests = std::move(claim.requests);
  forget_all_but_meta(claim);
  claim.requests = std::move(requests);
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "allocation") return read_allocation(field, fault, claim) || fault.in(key);
    if (key == "reservedFor") return read_list(field, fault, claim.reserved_for, read_consumer) || fault.in(key);
    if (key == "devices") return read_list(field, fault, claim.devices, read_device_status) || fault.in(key);
    return true;
  });
}

}  // namespace

std::int64_t device_count(std::int64_t count) { return std::clamp<std::int64_t>(count, 1, kMostDevices); }

std::string NetworkWords::joined() const {
  std::string words;
  const auto add = [&words](const std::string& word) {
    if (!word.empty()) words += (words.empty() ? "" : " ") + word;
  };
  add(interface);
  for (const auto& address : addresses) add(address);
  add(hardware);
  return words;
}

bool read_resource_claim(JsonObject root, Fault& fault, const KeptFields& kept, ResourceClaim& claim) {
  return read_root(root, fault, kept, Kind::ResourceClaim, claim.meta, [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, claim);
    return key != "status" || read_status(value, fault, claim);
  });
}

}  // namespace dhc::k8s
