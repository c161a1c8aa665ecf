#pragma once
#include "cli/command_line.h"

namespace dhc::cli {

/// `run`: the controller against a cluster, until a signal. 0 after a signal, 1 if it cannot begin, 2 if the options do
/// not fit together.
[[nodiscard]] int run(const RunOptions& options);

}  // namespace dhc::cli
