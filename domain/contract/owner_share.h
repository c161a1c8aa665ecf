#pragma once

namespace dhc {

/// How much of what could have broken a workload held when a device broke under it; each from 0 to 1.
struct OwnerShare {
  double scope = 1;  ///< Of the held devices of the driver or resource, or of those with as new a driver: the larger.
  double node = 1;   ///< Of those on the device's node.
  friend bool operator==(const OwnerShare&, const OwnerShare&) = default;
};

/// How much of what could have broken was at the node, or under the release of a driver, where a device broke; each
/// from 0 to 1.
struct GroundShare {
  double scope = 1;     ///< Of the held devices of the driver or resource.
  double workload = 1;  ///< Of those that its workload held, of several the one with the largest share there.
  double image = 1;     ///< Likewise of those that ran its image.
  friend bool operator==(const GroundShare&, const GroundShare&) = default;
};

}  // namespace dhc
