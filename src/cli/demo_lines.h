#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/demo_ledger.h"
#include "cli/demo_lockstep.h"

namespace dhc::cli {

/// What a line tells, and so its colour.
enum class DemoTone : unsigned char { Bad, Good, Hold, Act, Operator };

/// One line of the demo.
struct DemoLine {
  WallTime at;  ///< Of the cluster's clock.
  DemoTone tone = DemoTone::Act;
  std::string_view word;
  std::string text;
  bool is_wrapped = false;  ///< Where it is too long it goes on below; else it is cut.
};

[[nodiscard]] std::vector<DemoLine> lines_of(const DemoEvent& event, WallTime at);

/// Writes that were accepted, and what the controller tells as Events; what only waits is left out.
[[nodiscard]] std::vector<DemoLine> lines_of(const DemoMoment& moment, WallTime at);

[[nodiscard]] DemoLine line_of(const DemoReplaced& replaced, WallTime at);

}  // namespace dhc::cli
