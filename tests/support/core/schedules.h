#pragma once
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "base/now.h"
#include "tests/support/core/coverage.h"

namespace dhc::test {

/// How many random schedules a test runs, and from which: DHC_SCHEDULES asks for another number, such as 10,000, and
/// DHC_FIRST_SCHEDULE for a part of them; DHC_LEASE_SCHEDULES for those of leaders. The number of a schedule is its
/// seed.
inline int schedule_number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}
inline int schedule_count() { return schedule_number("DHC_SCHEDULES", 500); }
inline int first_schedule() { return schedule_number("DHC_FIRST_SCHEDULE", 0); }

/// Runs every schedule of this kind that is asked for, and counts what they reach.
template <class Run>
void run_schedules(const std::string& kind, const Run& run) {
  Coverage coverage(kind, first_schedule(), schedule_count());
  for (int seed = first_schedule(); seed < schedule_count(); ++seed) {
    CAPTURE(seed);
    coverage.begin_schedule(seed);
    run(static_cast<unsigned>(seed));
  }
}

/// The choices of one schedule: the same seed, the same choices on every machine.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool one_in(int count) { return below(count) == 0; }
  Millis between(Millis least, Millis most) {
    return least + Millis(below(static_cast<int>((most - least).count()) + 1));
  }
  template <class Container>
  const auto& any_of(const Container& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::mt19937 random_;
};

}  // namespace dhc::test
