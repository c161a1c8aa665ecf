#pragma once
#include "cli/command_line.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `explain`: what a verdict's reason means, whether it is told as an Event, and what to do about it; every reason
/// without arguments. A word that is no reason gives code 1 and what may have been meant.
[[nodiscard]] Printed explain(const ExplainOptions& options);

}  // namespace dhc::cli
