#pragma once
#include <optional>
#include <string>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/history/device_record.h"
#include "domain/incidents/incident_store.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The records of the other devices of the record's physical card, as far as that is known now: replicas by their
/// names, partitions by what their driver publishes or by the parent's name, which is remembered also of those that are
/// gone. Those of another card, or of a node that was made anew, are none of them.
[[nodiscard]] std::vector<const DeviceRecord*> others_of_card(const IncidentStore& incidents,
                                                              const DeviceRecord& record, const World& world,
                                                              const Policy& policy);

/// Their histories.
[[nodiscard]] std::vector<const DeviceHistory*> pasts_of(const std::vector<const DeviceRecord*>& records);

/// Whether the node under the device was made anew since the device was known there, and nothing says that it is the
/// same device; none: nothing is known of it, or the node is the same.
[[nodiscard]] std::optional<bool> is_on_other_host(const DeviceRecord& record, const World& world);

/// A penalty and when it was, as it is told.
struct PenaltyThen {
  double penalty = 0;
  WallTime at;
};
/// The penalty of the record's physical card as of its last change: the same as long as no other device of it changes.
[[nodiscard]] PenaltyThen penalty_of_card(const IncidentStore& incidents, const DeviceRecord& record,
                                          const World& world, const Policy& policy);

/// What its card's other devices add, in words for a device that is quarantined; empty: nothing.
[[nodiscard]] std::string with_card_words(const IncidentStore& incidents, const DeviceRecord& record,
                                          const World& world, const Policy& policy, WallTime now);

}  // namespace dhc
