#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "domain/incidents/state_caps.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// Has evictions recorded against the caps before they are sent: a leader that is killed in between, again and again,
/// would otherwise walk past the caps. For one turn, whose records are written together.
class Charging {
 public:
  explicit Charging(const PlanInput& input) : input_(input) {}

  /// Has the evictions of a unit recorded that are not yet. The reason if there is no room for one.
  [[nodiscard]] std::optional<HoldReason> record(const Unit& unit);

  /// Whether as many are recorded as may be in flight: then only what can go now is.
  [[nodiscard]] bool is_ahead();

  /// Whether as many are recorded as may be at all.
  [[nodiscard]] bool is_full();

  /// That the state does not show the records of a unit yet. None outside a cluster: nothing is written there, and this
  /// process alone counts.
  [[nodiscard]] std::optional<HoldReason> not_saved(const Unit& unit) const;

  /// What is to be recorded.
  [[nodiscard]] std::vector<EvictionCharge>& charges() { return charges_; }

 private:
  [[nodiscard]] std::size_t places_taken();
  [[nodiscard]] std::optional<HoldReason> record(const AffectedPod& member, const Unit& unit);
  [[nodiscard]] std::optional<HoldReason> has_no_place(const EvictionCharge& charge);

  const PlanInput& input_;
  std::map<std::string, DeviceKey> goes_for_;  // of pods that have come here, in this turn
  std::set<std::string> charged_;              // in this turn
  std::optional<CapsSize> size_;               // of what counts against the caps
  std::optional<std::size_t> places_taken_;    // of CapBook::kMostCharges
  std::vector<EvictionCharge> charges_;
};

}  // namespace dhc::eviction
