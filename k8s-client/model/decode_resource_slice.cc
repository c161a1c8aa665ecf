#include "k8s-client/model/decode_resource_slice.h"

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

bool read_pool(JsonValue value, Fault& fault, ResourceSlice& slice) {
  slice.pool.clear();
  slice.generation = 0;
  slice.pool_slices = 0;
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "name") return read_name(field, fault, slice.pool) || fault.in(key);
    const bool is_count = key == "resourceSliceCount";
    if (!is_count && key != "generation") return true;
    std::optional<std::int64_t> number;
    if (!read_integer(field, fault, number)) return fault.in(key);
    (is_count ? slice.pool_slices : slice.generation) = number.value_or(0);
    return true;
  });
}

bool read_counters(JsonValue value, Fault& fault, std::string& counter_set) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "counterSet" || read_name(field, fault, counter_set) || fault.in(key);
  });
}

bool read_consumed(JsonValue value, Fault& fault, SliceDevice& device) {
  std::vector<std::string> sets;
  if (!read_list(value, fault, sets, read_counters)) return false;
  device.counter_set = only_one_of(std::move(sets));
  return true;
}

// What a device says of itself stands beside its name, in v1beta1 a level deeper in `basic`.
bool read_device_field(std::string_view key, JsonValue field, Fault& fault, SliceDevice& device) {
  if (key == "taints") return read_list(field, fault, device.taints, read_taint) || fault.in(key);
  if (key == "consumesCounters") return read_consumed(field, fault, device) || fault.in(key);
  if (key == "attributes") return read_attributes(field, fault, device.attributes) || fault.in(key);
  return true;
}

bool read_basic(JsonValue value, Fault& fault, SliceDevice& device) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return read_device_field(key, field, fault, device);
  });
}

bool read_slice_device(JsonValue value, Fault& fault, SliceDevice& device) {
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "name") return read_name(field, fault, device.name) || fault.in(key);
    if (key == "basic") return read_basic(field, fault, device) || fault.in(key);
    return read_device_field(key, field, fault, device);
  });
  return read && require(device.name, fault, "name");
}

bool read_spec(JsonValue value, Fault& fault, ResourceSlice& slice) {
  forget_all_but_meta(slice);
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "driver") return read_name(field, fault, slice.driver) || fault.in(key);
    if (key == "pool") return read_pool(field, fault, slice) || fault.in(key);
    if (key == "nodeName") return read_name(field, fault, slice.node_name) || fault.in(key);
    if (key == "devices") return read_list(field, fault, slice.devices, read_slice_device) || fault.in(key);
    return true;
  });
  return read;
}

}  // namespace

bool read_resource_slice(JsonObject root, Fault& fault, const KeptFields& kept, ResourceSlice& slice) {
  const bool read =
      read_root(root, fault, kept, Kind::ResourceSlice, slice.meta,
                [&](std::string_view key, JsonValue value) { return key != "spec" || read_spec(value, fault, slice); });
  if (!read) return false;
  const bool named = require(slice.driver, fault, "driver") && (require(slice.pool, fault, "name") || fault.in("pool"));
  slice.devices.shrink_to_fit();
  return named || fault.in("spec");
}

}  // namespace dhc::k8s
