#pragma once
#include <chrono>
#include <cstdint>

namespace dhc {

/// A steady clock that the core can name but not read; only the shell makes its time points.
struct MonoClock {
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonoClock, duration>;
  static constexpr bool is_steady = true;
};

/// Time for windows and waits: never goes back, means nothing outside this process.
using MonoTime = MonoClock::time_point;

/// Time as Kubernetes writes it (UTC), for what is shown or compared with API times.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

/// Both clocks, read once per turn by the run loop and passed down.
struct Now {
  MonoTime mono;
  WallTime wall;
};

using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

/// The monotonic time of a moment known by the wall clock; a moment in the future counts as now.
/// Clock steps between then and now distort it, so it is used only for what a restart would otherwise forget.
[[nodiscard]] constexpr MonoTime mono_of(WallTime when, const Now& now) {
  const auto age = std::chrono::duration_cast<Millis>(now.wall - when);
  return age > Millis::zero() ? now.mono - age : now.mono;
}

/// The wall time of a monotonic moment.
[[nodiscard]] constexpr WallTime wall_of(MonoTime when, const Now& now) { return now.wall - (now.mono - when); }

}  // namespace dhc
