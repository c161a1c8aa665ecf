#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "domain/cluster/world.h"
#include "domain/history/device_record.h"

namespace dhc {

/// What one turn shows of our rules and node taints.
struct SeenTaints {
  const World& world;
  const std::map<std::string, WallTime>& removed_rules;   ///< Rules that went away since the last turn, and when.
  const std::map<std::string, WallTime>& removed_taints;  ///< Nodes from which our taint went away, likewise.
  const std::set<std::string>& untainting;                ///< Nodes whose taint we have asked to remove.
  const std::set<std::string>& card_removals;             ///< Rules of cards whose removal we have asked for.
  const Now& now;
};

/// Takes in what became of our rule or node taint for the record's device, and what an operator has said by it. True if
/// the record has changed.
bool look_at_taint(DeviceRecord& record, const SeenTaints& seen);

/// Up to when an operator has looked at the record's open incident, by his annotation on its node; none: he has not.
[[nodiscard]] std::optional<WallTime> looked_at_until(const DeviceRecord& record, const World& world, WallTime now);

}  // namespace dhc
