#pragma once
#include <optional>
#include <set>
#include <string>

#include "reconcilers/shared/places.h"

namespace dhc {

/// The places of one turn, shared by all who look for one, and made when the first asks: most turns do not.
class PlaceSearch {
 public:
  explicit PlaceSearch(const PlanInput& input) : input_(input) {}

  [[nodiscard]] Places& places() {
    if (!places_) places_.emplace(input_, input_.coming);
    return *places_;
  }

  /// Waiting pods for which a place is free, by UID, for `ComingPods::note_offered`; none: nobody has looked.
  [[nodiscard]] std::optional<std::set<std::string>> offered() const {
    return places_ ? std::optional(places_->offered()) : std::nullopt;
  }

  /// Pods that would have a place but for pods of other namespaces, by UID, for `ComingPods::note_crowded`.
  [[nodiscard]] std::set<std::string> crowded() const { return places_ ? places_->crowded() : std::set<std::string>(); }

 private:
  const PlanInput& input_;
  std::optional<Places> places_;
};

}  // namespace dhc
