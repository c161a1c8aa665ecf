#pragma once
#include "cli/command_line.h"

namespace dhc::cli {

/// `demo`: the controller against a simulated cluster in this process, told as it happens. 0 if exactly the pods that
/// held broken devices were evicted (each other one has a reason), or on Ctrl-C, 1 otherwise.
[[nodiscard]] int demo(const DemoOptions& options);

}  // namespace dhc::cli
