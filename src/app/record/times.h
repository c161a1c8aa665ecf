#pragma once
#include <chrono>
#include <cstdint>

#include "base/now.h"

namespace dhc::record {

/// Both clocks at one moment, from which a recording counts.
struct Base {
  std::int64_t mono_ms = 0;
  std::int64_t wall_us = 0;
};

/// A time as a recording has it: milliseconds of the steady clock, and how many microseconds the other one is off.
struct Stamp {
  std::int64_t ms = 0;
  std::int64_t us = 0;
};

[[nodiscard]] inline Base base_of(const Now& now) {
  return {.mono_ms = now.mono.time_since_epoch().count(), .wall_us = now.wall.time_since_epoch().count()};
}

[[nodiscard]] inline Stamp stamp_of(const Base& base, const Now& now) {
  const auto ms = now.mono.time_since_epoch().count() - base.mono_ms;
  return {.ms = ms, .us = now.wall.time_since_epoch().count() - base.wall_us - ms * 1000};
}

[[nodiscard]] inline Now now_of(const Base& base, const Stamp& stamp) {
  return {.mono = MonoTime(Millis(base.mono_ms + stamp.ms)),
          .wall = WallTime(std::chrono::microseconds(base.wall_us + stamp.ms * 1000 + stamp.us))};
}

}  // namespace dhc::record
