#pragma once
#include "cli/plugin/options.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `top`: the live view, until `q` or Ctrl-C. It needs a terminal.
[[nodiscard]] Printed top(const ViewOptions& options);

}  // namespace dhc::cli
