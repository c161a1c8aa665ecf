#pragma once
#include <optional>
#include <random>
#include <span>

#include "app/controller.h"

namespace dhc::test {

/// Takes turns as the loop around the controller does, and holds the controller to its word that a plan stands: skips
/// up to `kMostSkipped` such turns in a row, then plans all the same, and fails the test where that plan says or does
/// anything else, or would have woken before the one that stood.
class PlanOracle {
 public:
  static constexpr unsigned kMostSkipped = 3;

  /// One turn with these messages; of a skipped one no actions, and the time at which the standing plan wakes.
  [[nodiscard]] Turn turn(Controller& controller, std::span<Message> messages, const Now& now);

 private:
  [[nodiscard]] Turn plan(Controller& controller, const Now& now);

  std::optional<MonoTime> wake_at_;  // of the standing plan
  unsigned to_skip_ = 0;             // before the next comparison
  std::minstd_rand lengths_;         // the same in each run
};

}  // namespace dhc::test
