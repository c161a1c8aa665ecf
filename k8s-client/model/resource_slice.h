#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "k8s-client/model/meta.h"

namespace dhc::k8s {

/// One device that a driver publishes.
struct SliceDevice {
  SharedText name;
  std::vector<Taint> taints;
  StringMap attributes = {};  ///< Those with a string value, by the name as published; sorted by name.
  /// The set of shared counters that it draws on, as the partitions of one card do; empty: none, or several.
  /// **Source:** KEP-4815.
  std::string counter_set = {};
  friend bool operator==(const SliceDevice&, const SliceDevice&) = default;
};

/// The counter set that a device names, if it names one alone.
[[nodiscard]] inline std::string only_one_of(std::vector<std::string> sets) {
  return sets.size() == 1 ? std::move(sets.front()) : std::string();
}

/// The part of ResourceSlice that we read. Only slices of a pool's highest generation count, and of that one all are
/// there when they are `pool_slices`. **Source:** KEP-4381.
struct ResourceSlice {
  Meta meta;
  SharedText driver;
  SharedText pool;
  std::int64_t generation = 0;
  SharedText node_name;
  std::vector<SliceDevice> devices;
  std::int64_t pool_slices = 0;  ///< Of how many slices the pool is made in this generation; 0: not said.
  friend bool operator==(const ResourceSlice&, const ResourceSlice&) = default;
};

}  // namespace dhc::k8s
