#pragma once
#include "cli/command_line.h"

namespace dhc::cli {

/// `uninstall`: removes every trace of ours and names it. 0 when none is left, 1 if one could not be removed, a list
/// could not be read, or a controller still runs. With `dry_run` nothing is written.
[[nodiscard]] int uninstall(const UninstallOptions& options);

}  // namespace dhc::cli
