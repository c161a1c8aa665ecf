#pragma once

namespace dhc {

/// How much of what could have broken a workload held when a device broke under it; each from 0 to 1.
struct OwnerShare {
  double scope = 1;  ///< Of the held devices of the driver or resource, or of those with as new a driver: the larger.
  double node = 1;   ///< Of those on the device's node.
  friend bool operator==(const OwnerShare&, const OwnerShare&) = default;
};

}  // namespace dhc
