#pragma once
#include <chrono>

#include "base/now.h"
#include "k8s-client/boot_clock.h"

namespace dhc {

/// The steady clock's time as the core names it. Of src/app only this file reads a clock. Any thread.
[[nodiscard]] inline MonoTime mono_now() {
  return MonoTime(std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch()));
}

/// UTC, with microseconds. Any thread.
[[nodiscard]] inline WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

/// The clock of everything about our Lease, and what it says at this moment by the wall.
[[nodiscard]] inline Now lease_now() { return {.mono = k8s::boot_now(), .wall = wall_now()}; }

/// Both, for one turn.
[[nodiscard]] inline Now read_now() { return {.mono = mono_now(), .wall = wall_now()}; }

/// A moment that a condition variable can wait for.
[[nodiscard]] inline std::chrono::steady_clock::time_point steady_at(MonoTime when) {
  return std::chrono::steady_clock::time_point(when.time_since_epoch());
}

/// A steady moment finer than a millisecond, for measuring.
[[nodiscard]] inline std::chrono::steady_clock::time_point stopwatch_now() { return std::chrono::steady_clock::now(); }

}  // namespace dhc
