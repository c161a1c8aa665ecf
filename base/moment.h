#pragma once
#include "base/now.h"

namespace dhc {

/// One moment on both clocks: windows use `mono`, people and API times `wall`.
struct Moment {
  MonoTime mono;
  WallTime wall;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

[[nodiscard]] constexpr Moment moment_of(const Now& now) { return {.mono = now.mono, .wall = now.wall}; }

/// A moment that only the wall clock knows, such as one read from the API.
[[nodiscard]] constexpr Moment moment_of(WallTime when, const Now& now) {
  return {.mono = mono_of(when, now), .wall = when < now.wall ? when : now.wall};
}

}  // namespace dhc
