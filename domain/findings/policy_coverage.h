#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "domain/policy/policy.h"

namespace dhc {

class World;

/// How much of the cluster one policy speaks of now.
struct PolicyCoverage {
  std::string policy;
  Mode mode = Mode::Observe;  ///< What it may do here.
  std::int64_t devices = 0;   ///< Known devices that its resources, drivers and nodeSelector name, held or free.
  std::int64_t held = 0;      ///< Devices that some pod holds which all its selectors fit.
  friend bool operator==(const PolicyCoverage&, const PolicyCoverage&) = default;
};

/// The coverage of each policy, in their order. Devices that an earlier policy takes count for the later one too: the
/// signals may differ.
[[nodiscard]] std::vector<PolicyCoverage> coverage_of(const World& world, const Policy& policy);

}  // namespace dhc
