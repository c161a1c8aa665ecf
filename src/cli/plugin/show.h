#pragma once
#include "cli/plugin/options.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `devices`, `incidents`, `lemons`; watched ones print as they go.
[[nodiscard]] Printed show(const ViewOptions& options);

/// `explain pod|device|node|job NAME`.
[[nodiscard]] Printed ask(const AskOptions& options);

}  // namespace dhc::cli
