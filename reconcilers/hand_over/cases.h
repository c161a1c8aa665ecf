#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::hand_over {

/// One device for which its node is handed over.
struct Ground {
  const DeviceRecord* record = nullptr;  ///< Never null; its incident goes on.
  const DevicePolicy* policy = nullptr;  ///< Never null; has `handOver`.
  std::string why;                       ///< The same as long as it holds: it stands in the condition.
};

/// Of each node, by the type of the condition, the devices that are grounds, by key.
using Cases = std::map<std::string, std::map<std::string, std::vector<Ground>>>;

/// One object by which a node, or a device of it, is to be handed over.
struct ObjectCase {
  std::string node;             ///< Where its devices were last known; it may be gone, as it is while it is replaced.
  std::string device;           ///< For people; empty: it stands for the node.
  std::vector<Ground> grounds;  ///< By key; never none. The first one's policy has `handOver.resource`.
  std::set<std::string> incidents;  ///< Of the grounds.
};

/// By what the object is remembered by.
using ObjectCases = std::map<std::string, ObjectCase>;

/// Every object that is to be there. Points as `find_cases` does.
[[nodiscard]] ObjectCases find_object_cases(const PlanInput& input);

/// Every node in the World that is to be handed over by a condition: a device of it is quarantined, or has had as many
/// incidents as the policy says and the last one goes on. Points into the policy and the incident store.
[[nodiscard]] Cases find_cases(const PlanInput& input);

/// The first policy that hands nodes over by a condition of that type; null: none does any more.
[[nodiscard]] const DevicePolicy* policy_with(const Policy& policy, const std::string& type);

/// Names of the nodes that have devices of this device's driver or resource.
[[nodiscard]] std::set<std::string> nodes_with(const World& world, const DeviceKey& key);

}  // namespace dhc::hand_over
