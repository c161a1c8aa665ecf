#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/policy/config.h"

namespace dhc {

/// The configuration that is packed into what is applied to a cluster, or given to Helm.
struct PackedConfig {
  std::vector<ConfigFile> files;               ///< One for each key, named after file, ConfigMap and key.
  std::vector<ConfigMistake> mistakes;         ///< Keys that are no files; nothing is in it.
  std::map<std::string, std::size_t> skipped;  ///< Objects that hold no policies, by kind.
  std::vector<std::string> presets;            ///< What Helm values name and the chart holds: not in `files`.
};

/// What is in a text of Kubernetes objects (`kubectl get -o yaml`, `helm template`, `kustomize build`) or of Helm
/// values; none: it is something else, and a configuration's own text if anything. Of several ConfigMaps those count
/// that hold policies.
[[nodiscard]] std::optional<PackedConfig> unpack_config(const ConfigFile& file);

/// The same for a ConfigMap's data; mistakes call it `name`.
[[nodiscard]] PackedConfig unpack_config_map(const std::string& name,
                                             const std::map<std::string, std::string, std::less<>>& data);

}  // namespace dhc
