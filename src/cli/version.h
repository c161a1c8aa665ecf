#pragma once
#include <string>

#include "cli/command_line.h"

namespace dhc::cli {

/// What `version` prints: `device-health-controller 0.2.0`, or the same as JSON with the compiler.
[[nodiscard]] std::string version_text(const VersionOptions& options);

}  // namespace dhc::cli
