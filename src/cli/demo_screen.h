#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "cli/demo_acts.h"
#include "cli/demo_lines.h"

namespace dhc::cli {

/// For how long a reader sees an act's heading, and one of several lines of a moment, at speed 1.
inline constexpr Millis kForHeading{3000};
inline constexpr Millis kForLine{300};

/// For how long he sees what was told before the next is, at speed 1, where the cluster waited so long between them.
[[nodiscard]] inline Millis shown_wait(const DemoAct& act, Millis wait) { return std::min(wait, act.longest_wait); }

/// How the demo's lines are laid out.
struct DemoLook {
  bool is_coloured = false;
  std::size_t width = 120;  ///< Of a line, in columns.
};

/// As standard output is: coloured on a terminal, unless NO_COLOR is set or TERM is `dumb`, and as wide as it is.
/// **Source:** no-color.org: any value but an empty one.
[[nodiscard]] DemoLook look_of_output();

/// The line with its end, the text aligned.
[[nodiscard]] std::string painted(const DemoLine& line, const DemoLook& look);

/// What is said before an act.
[[nodiscard]] std::string heading(const DemoAct& act, std::size_t number, std::size_t count, const DemoLook& look);

/// That so much of the cluster's time was left out.
[[nodiscard]] std::string skipped(Millis time, const DemoLook& look);

}  // namespace dhc::cli
