#pragma once
#include <span>

#include "base/moment.h"
#include "domain/history/device_record.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The penalty of a physical card as of this time: that of one of its devices, and what the others add to it. Of a
/// fault that took several of them at once (`is_fault_of_another` says when that is so) one counts, and what somebody
/// has vouched for counts no more. Without others it is the device's own, and never less than that.
[[nodiscard]] double card_penalty(const DeviceHistory& own, std::span<const DeviceHistory* const> others,
                                  const RecoverRules& rules, WallTime at);

/// What is left of the device's penalty where somebody vouches for all that it broke until then.
[[nodiscard]] double penalty_after(const DeviceHistory& past, const RecoverRules& rules, WallTime vouched_until,
                                   WallTime at);

/// The highest that the card's penalty was at any of its faults, by what is remembered of those that nobody has vouched
/// for or taken back: what has decayed since, or was rounded when it was written down, made it no better then.
[[nodiscard]] double highest_card_penalty(const DeviceHistory& own, std::span<const DeviceHistory* const> others,
                                          const RecoverRules& rules, WallTime at);

/// Whether an incident of the device that opens now is of a fault that another device of its card has shown first: one
/// that began less than `healthyFor` ago, as it takes for a single device that goes bad again to break anew.
[[nodiscard]] bool is_fault_of_another(const DeviceHistory& own, std::span<const DeviceHistory* const> others,
                                       const RecoverRules& rules, WallTime now);

}  // namespace dhc
