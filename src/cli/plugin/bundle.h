#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/now.h"

namespace dhc::cli {

/// One file of a support bundle.
struct BundleFile {
  std::string name;  ///< Below the bundle's folder; at most 90 bytes.
  std::string text;
};

/// The files as a tar archive, below `folder/`. **Source:** POSIX.1-1988, ustar.
[[nodiscard]] std::string tar_of(const std::string& folder, const std::vector<BundleFile>& files, WallTime at);

/// An object or list of the API without what may hold a secret or says nothing: values of environment variables,
/// annotations that are not ours, what follows the host of a URL in a ConfigMap, managedFields.
[[nodiscard]] nlohmann::ordered_json redacted(const nlohmann::ordered_json& json);

/// What is kept of a list of nodes: names, UIDs, conditions, taints, capacity and allocatable.
[[nodiscard]] nlohmann::ordered_json node_summary(const nlohmann::ordered_json& list);

}  // namespace dhc::cli
