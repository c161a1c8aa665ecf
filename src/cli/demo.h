#pragma once
#include "cli/command_line.h"

namespace dhc::cli {

/// `demo`: acts of the controller against a simulated cluster in this process, in the cluster's own time, told on
/// standard output; then an account of every pod on a bad device. 0 if the account adds up, wherever the demo ended;
/// 1 if it does not, or cannot start; 2 if there is no such act.
[[nodiscard]] int demo(const DemoOptions& options);

}  // namespace dhc::cli
