#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `plan`: looks at the cluster once and says what today's configuration and that of the files would do. 1 if the
/// cluster or a file cannot be read, or the new configuration has mistakes. Writes nothing to the cluster.
[[nodiscard]] Printed plan(const PlanOptions& options);

}  // namespace dhc::cli
