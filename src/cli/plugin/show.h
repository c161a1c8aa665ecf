#pragma once
#include "cli/plugin/options.h"
#include "cli/printed.h"

namespace dhc::cli {

/// Exit code where no controller has written a status.
inline constexpr int kNoStatus = 3;

/// `devices`, `incidents`, `lemons`; watched ones print as they go.
[[nodiscard]] Printed show(const ViewOptions& options);

/// `explain pod|device|node|job NAME`.
[[nodiscard]] Printed ask(const AskOptions& options);

}  // namespace dhc::cli
