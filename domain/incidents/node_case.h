#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/incidents/incident_store.h"

namespace dhc {

/// The bad devices of one resource or driver on one node, where only the node can be tainted: device-plugin devices,
/// and DRA devices of a server without DeviceTaintRules.
struct NodeCase {
  std::vector<const DeviceRecord*> bad;  ///< Open incidents that no operator has acknowledged, by key.
  const DevicePolicy* policy = nullptr;  ///< The first of their policies, one that enforces before others; never null.
  Mode mode = Mode::Observe;
  std::int64_t bad_cards = 0;  ///< The physical cards behind `bad`.
  std::int64_t known = 0;      ///< Those of the resource or driver on the node; counted only where `node: NoSchedule`.
  bool enough = false;         ///< `node: NoSchedule`, and `nodeAtLeast` is met.
  bool observed = false;       ///< The policy enforces, and its `enforceOn` holds for too few of the bad devices.
};

/// By (node, resource or driver); only of policies with `taint`.
using NodeCases = std::map<std::pair<std::string, std::string>, NodeCase>;

/// Of the devices in focus (null: of all), of which a node has all or none. Points into `policy` and `incidents`: valid
/// for one turn.
[[nodiscard]] NodeCases find_node_cases(const World& world, const Policy& policy, const IncidentStore& incidents,
                                        const Focus* focus);

/// True if only its node can be tainted for this device.
[[nodiscard]] bool needs_node_taint(const World& world, const DeviceKey& key);

}  // namespace dhc
