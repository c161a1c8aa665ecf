#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `validate`: reads all files as one configuration. Every mistake as `FILE:LINE:COLUMN: what; remedy` and code 1, or a
/// summary, each warning on standard error, and code 0.
[[nodiscard]] Printed validate(const ValidateOptions& options);

}  // namespace dhc::cli
