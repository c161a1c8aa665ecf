#pragma once
#include "cli/plugin/options.h"
#include "cli/printed.h"

namespace dhc::cli {

/// `support-bundle`: reads what a bug report needs, as far as it may, and writes it into one tar archive. What could
/// not be read is listed in it. No Secret is read.
[[nodiscard]] Printed support_bundle(const BundleOptions& options);

}  // namespace dhc::cli
