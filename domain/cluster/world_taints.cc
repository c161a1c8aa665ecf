// The part of World that remembers drivers' taints: a driver that begins anew has forgotten what it tainted.
#include <algorithm>

#include "domain/cluster/world.h"

namespace dhc {

namespace {

/// Whether the driver publishes the device without any taint of that key. One of another value or effect is written
/// over the fault, which is not taken back by that. **Source:** NVIDIA's driver 0.5.0: one taint a key, a harmless XID
/// 43 with effect None after a fatal 79.
bool is_bare(const Inventory& inventory, const DeviceKey& device, const std::string& taint_key) {
  return inventory.tainted_by_driver(device) && !inventory.has_taint(device, taint_key);
}

}  // namespace

void World::follow_kept_taints(const Now& now) {
  for (const auto& [key, at] : bare_) {
    if (refreshed_at_ < at && at <= now.mono) touched_.device(key);
  }
  refreshed_at_ = now.mono;
  std::erase_if(bare_, [&](const auto& entry) {
    const auto incident = incidents_.find(entry.first);
    const bool is_over = incident == incidents_.end() || !is_bare(inventory_, entry.first, incident->second.taint.key);
    if (is_over) touched_.device(entry.first);
    return is_over;
  });
  for (const auto& key : by_taint_) {
    if (!is_bare(inventory_, key, incidents_.at(key).taint.key)) continue;
    // The start of the driver's container comes by another watch than its slices, and has no order with them.
    const auto counts_at = now.mono + (reporter_of(key) ? settle_of(key) : Millis::zero());
    if (bare_.try_emplace(key, counts_at).second) touched_.device(key);
  }
}

std::optional<KeptTaint> World::kept_taint(const DeviceKey& key) const {
  const auto* incident = remembered(key);
  // What an operator vouches for is nobody's word any more, also where another taint was written over it.
  if (incident == nullptr || incident->taint.key.empty() || incident->vouched_for) return std::nullopt;
  KeptTaint kept{.taint = incident->taint,
                 .since = incident->since,
                 .last_word = incident->word.called_bad_at,
                 .said = incident->said,
                 .policy = incident->policy,
                 .forgotten = has_forgotten(key, *incident)};
  const auto bare = bare_.find(key);
  if (bare == bare_.end()) return kept;
  kept.forgotten = kept.forgotten || !incident->taint_seen;
  if (!kept.forgotten && bare->second <= refreshed_at_) return std::nullopt;
  return kept;
}

std::vector<DeviceKey> World::tainted_incidents() const { return {by_taint_.begin(), by_taint_.end()}; }

}  // namespace dhc
