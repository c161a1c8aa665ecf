#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/incidents/incident_store.h"

namespace dhc {

/// Devices whose incident is open, of one policy, driver or resource, and node.
struct IncidentCount {
  std::string policy;
  std::string driver;    ///< Of DRA devices; else empty.
  std::string resource;  ///< Of device-plugin devices; else empty.
  std::string node;      ///< Empty: the devices have no node, or the rows of further nodes are together here.
  std::size_t open = 0;
  std::size_t quarantined = 0;  ///< Of those.
};

/// At most so many nodes have rows of their own: those with the most devices.
inline constexpr std::size_t kMostIncidentNodes = 200;

/// Sorted by policy, driver, resource and node.
[[nodiscard]] std::vector<IncidentCount> count_incidents(const DeviceRecords& records, const World& world);

}  // namespace dhc
