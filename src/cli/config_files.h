#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "domain/policy/config.h"

namespace dhc::cli {

/// What was read, and what was not.
struct ReadConfig {
  ConfigResult config;
  std::vector<std::string> skipped;  ///< Objects without policies, a sentence for each file.
  std::vector<std::string> presets;  ///< Named by Helm values and not read, a sentence for each file.
};

/// The configuration in these files, `-` for standard input; a ConfigMap among objects of a cluster, and Helm values,
/// count as the files in them. The outer error: one of them cannot be read.
[[nodiscard]] Result<ReadConfig> read_config_pieces(const std::vector<std::string>& names);

/// The same for those who decide by it: that a part of it could not be read is an error.
[[nodiscard]] Result<ConfigResult> read_config_files(const std::vector<std::string>& names);

}  // namespace dhc::cli
