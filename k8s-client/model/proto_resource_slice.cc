#include <cstdint>
#include <string>
#include <vector>

#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"

// **Source:** resource/v1 generated.proto, the messages that the functions name.
namespace dhc::k8s::proto {

namespace {

// ResourcePool.
bool read_pool(const Value& value, Fault& fault, ResourceSlice& slice) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, slice.pool) || fault.in("name");
    if (tag == 2) return read_number(field, fault, slice.generation) || fault.in("generation");
    if (tag == 3) return read_number(field, fault, slice.pool_slices) || fault.in("resourceSliceCount");
    return true;
  });
}

// One entry of Device.attributes: a DeviceAttribute, of which text is kept. Names and values go on into logs and a
// ConfigMap: what is no clean name is left out, not the whole slice.
bool read_attribute(const Value& value, Fault& fault, std::vector<MapEntry<std::string_view>>& attributes) {
  std::string_view key;
  Value attribute;
  if (!read_map_entry(value, fault, key, attribute)) return false;
  return each_field(attribute, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag != 4) return true;
    std::string text;
    if (!read_text(field, fault, text)) return false;
    if (is_clean_name(key) && is_clean_name(text)) attributes.emplace_back(key, attributes.size(), field.bytes);
    return true;
  });
}

// DeviceCounterConsumption.
bool read_counters(const Value& value, Fault& fault, std::string& counter_set) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_name(field, fault, counter_set) || fault.in("counterSet");
  });
}

// Device.
bool read_slice_device(const Value& value, Fault& fault, SliceDevice& device) {
  std::vector<MapEntry<std::string_view>> attributes;
  std::vector<std::string> counter_sets;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, device.name) || fault.in("name");
    if (tag == 2) return read_attribute(field, fault, attributes) || fault.in("attributes");
    if (tag == 4) return read_item(field, fault, counter_sets, read_counters) || fault.in("consumesCounters");
    if (tag == 8) return read_item(field, fault, device.taints, read_taint) || fault.in("taints");
    return true;
  });
  device.attributes = to_map(attributes);
  device.counter_set = only_one_of(std::move(counter_sets));
  return read && require(device.name, fault, "name");
}

// ResourceSliceSpec.
bool read_slice_spec(const Value& value, Fault& fault, ResourceSlice& slice) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, slice.driver) || fault.in("driver");
      case 2:
        return read_pool(field, fault, slice) || fault.in("pool");
      case 3:
        return read_name(field, fault, slice.node_name) || fault.in("nodeName");
      case 6:
        return read_item(field, fault, slice.devices, read_slice_device) || fault.in("devices");
      default:
        return true;
    }
  });
}

}  // namespace

bool read_resource_slice(std::string_view message, Fault& fault, const KeptFields& kept, ResourceSlice& slice) {
  const auto read_field = [&](std::uint32_t tag, const Value& value) {
    return tag != 2 || read_slice_spec(value, fault, slice) || fault.in("spec");
  };
  if (!read_root(message, fault, kept, Kind::ResourceSlice, slice.meta, read_field)) return false;
  const bool named = require(slice.driver, fault, "driver") && (require(slice.pool, fault, "name") || fault.in("pool"));
  slice.devices.shrink_to_fit();
  return named || fault.in("spec");
}

}  // namespace dhc::k8s::proto
