#pragma once
#include <cstddef>
#include <optional>
#include <random>
#include <span>

#include "app/controller.h"

namespace dhc::test {

/// Takes turns as the loop around the controller does, and holds the controller to its word that a plan stands: skips
/// up to `kMostSkipped` such turns in a row, then plans all the same, and fails the test where that plan says or does
/// anything else, or would have woken before the one that stood. Some of the plans that are made are compared with
/// one that is made from nothing: whatever is kept between plans changes neither a verdict, nor an action or its place,
/// nor a wake.
class PlanOracle {
 public:
  static constexpr unsigned kMostSkipped = 3;
  /// One of so many plans is compared with one from nothing, of a World with more pods than `kLarge` one of
  /// `kOneOfLarge`: that takes a copy of everything.
  static constexpr unsigned kOneOf = 8;
  static constexpr std::size_t kLarge = 300;
  static constexpr unsigned kOneOfLarge = 64;

  /// One turn with these messages; of a skipped one no actions, and the time at which the standing plan wakes.
  [[nodiscard]] Turn turn(Controller& controller, std::span<Message> messages, const Now& now);

 private:
  [[nodiscard]] Turn plan(Controller& controller, const Now& now);

  std::optional<MonoTime> wake_at_;  // of the standing plan
  unsigned to_skip_ = 0;             // before the next comparison
  unsigned plans_ = 0;
  std::minstd_rand lengths_;  // the same in each run
};

}  // namespace dhc::test
