#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "domain/policy/config.h"

namespace dhc::cli {

/// The configuration in these files, `-` for standard input; a manifest of ConfigMaps counts as the files in it. The
/// outer error: one of them cannot be read.
[[nodiscard]] Result<ConfigResult> read_config_files(const std::vector<std::string>& names);

}  // namespace dhc::cli
