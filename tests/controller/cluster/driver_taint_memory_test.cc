// How much is remembered of what drivers taint.
#include <doctest/doctest.h>

#include "tests/controller/cluster/driver_taint_stage.h"

namespace dhc::test {

namespace {

k8s::ResourceSlice slice_with(const std::string& device) {
  k8s::ResourceSlice slice;
  slice.meta.name = slice.meta.uid = "slice";
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.node_name = "node-a";
  slice.devices = {{.name = device, .taints = {xid("79")}}};
  return slice;
}

Now after(Millis time) { return {.mono = MonoTime(time), .wall = WallTime(time)}; }

}  // namespace

TEST_CASE("A driver that renames its devices all the time leaves none behind that nobody holds") {
  Inventory inventory;
  DriverTaints taints;
  Millis time{0};
  const auto held = DeviceKey::dra(std::string(kDriver), "node-a", "gpu-0");
  for (int i = 0; i < 1000; ++i) {
    time += Seconds(10);
    inventory.upsert(slice_with("gpu-" + std::to_string(i)));
    taints.look_at(inventory, std::string(kDriver), "node-a", after(time));
    taints.forget(after(time), [&](const DeviceKey& key) { return key == held; });
  }
  CHECK(taints.devices().size() == 2 + kLongestUnknown / Seconds(10));
  CHECK(taints.devices().front() == held);
}

}  // namespace dhc::test
