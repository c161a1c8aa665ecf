#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "app/controller.h"
#include "tests/support/core/tape.h"

namespace dhc::test {

/// Takes turns as the loop around the controller does, and holds the controller to its word that a plan stands: skips
/// up to `kMostSkipped` such turns in a row, then plans all the same, and fails the test where that plan says or does
/// anything else, or would have woken before the one that stood. Plans are compared with one that is made from nothing:
/// whatever is kept between plans changes neither a verdict, nor an action or its place, nor a wake. Such a comparison
/// takes a copy of everything: of a long test, or one with many devices, only a part of the plans is compared, but all
/// where the environment has DHC_EVERY_PLAN, and a few where it has DHC_FEW_PLANS. What the controller takes in and
/// decides is recorded, and replayed in the end.
class PlanOracle {
 public:
  static constexpr unsigned kMostSkipped = 3;
  static constexpr unsigned kFirst = 12;       ///< So many plans are compared, each,
  static constexpr unsigned kOneOf = 8;        ///< and then one of so many.
  static constexpr std::size_t kLarge = 300;   ///< Where more pods and devices are known than these,
  static constexpr unsigned kOneOfLarge = 64;  ///< one of so many from the first.
  static constexpr unsigned kOneOfFew = 256;   ///< Where few are asked for, one of so many from the first.
  static constexpr unsigned kOneOfPages = 8;   ///< Of those that are compared, the page of one of so many.

  /// One turn with these messages; of a skipped one no actions, and the time at which the standing plan wakes.
  [[nodiscard]] Turn turn(Controller& controller, std::span<Message> messages, const Now& now);

  /// What was recorded so far of the last controller: a whole file.
  [[nodiscard]] std::string recording() const { return tape_ ? tape_->text() : std::string(); }

 private:
  [[nodiscard]] Turn plan(Controller& controller, const Now& now);
  [[nodiscard]] bool is_compared(const Controller& controller);

  std::optional<MonoTime> wake_at_;  // of the standing plan
  unsigned to_skip_ = 0;             // before the next comparison
  unsigned plans_ = 0;
  unsigned compared_ = 0;
  std::minstd_rand lengths_;  // the same in each run
  std::unique_ptr<Tape> tape_;
};

}  // namespace dhc::test
