#pragma once
#include <optional>

#include "reconcilers/eviction/limits.h"
#include "reconcilers/shared/place_search.h"

namespace dhc::eviction {

/// Whether the pods of a unit have a place to go, and what their eviction does without one.
class ReplacementGate {
 public:
  ReplacementGate(const PlanInput& input, PlaceSearch& search) : input_(input), search_(search) {}

  /// That no place is known, and what follows; none: a place is known.
  [[nodiscard]] std::optional<HoldReason> lacking(const Unit& unit);

  /// The node of the place that was found last; empty: none was.
  [[nodiscard]] const std::string& found_on() const { return found_on_; }
  [[nodiscard]] Places& places() { return search_.places(); }

  /// True if the eviction of a unit without a place waits: for `whenNoReplacement.wait` since it was due, for ever with
  /// `then: Hold`, and as long as the brake is engaged there.
  [[nodiscard]] bool holds(const Unit& unit) const;

  void take(const Unit& unit);

 private:
  [[nodiscard]] MonoTime waits_until(const Unit& unit) const;
  [[nodiscard]] bool is_held_for_ever(const Unit& unit) const;
  [[nodiscard]] bool is_braked(const Unit& unit) const;

  const PlanInput& input_;
  PlaceSearch& search_;
  std::string found_on_;
};

}  // namespace dhc::eviction
