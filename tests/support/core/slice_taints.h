#pragma once
#include <compare>
#include <set>
#include <string>

#include "domain/policy/policy.h"
#include "simulator/script/cluster.h"

namespace dhc::test {

/// A device as its driver's ResourceSlice names it.
struct TaintedDevice {
  std::string driver;
  std::string pool;
  std::string device;
  friend auto operator<=>(const TaintedDevice&, const TaintedDevice&) = default;
};

/// The devices that the server's ResourceSlices show with a taint that a policy names for their driver. It reads the
/// cluster's own objects and none of the controller's code.
[[nodiscard]] std::set<TaintedDevice> named_taints(const sim::Cluster& cluster, const Policy& policy);

}  // namespace dhc::test
