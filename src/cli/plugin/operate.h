#pragma once
#include "cli/plugin/options.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `ack`, `release-brake`, `pause`, `resume`: writes the annotations that docs/ name, on the object as it was read, and
/// says what follows.
[[nodiscard]] Printed operate(const OperatorOptions& options);

}  // namespace dhc::cli
