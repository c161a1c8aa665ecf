#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `validate`: reads all files as one configuration. Every mistake as `FILE:LINE:COLUMN: what; remedy` and code 1, or a
/// summary and code 0; on standard error each warning, and what was not read.
[[nodiscard]] Printed validate(const ValidateOptions& options);

}  // namespace dhc::cli
