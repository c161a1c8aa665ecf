#pragma once
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/policy/policy.h"

namespace dhc {

/// One text of configuration and the name by which mistakes call it.
struct ConfigFile {
  std::string name;
  std::string text;
};

/// One mistake in a configuration; line and column are counted from 1.
struct ConfigMistake {
  std::string file;
  int line = 1;
  int column = 1;
  std::string message;
  std::string remedy;
  friend bool operator==(const ConfigMistake&, const ConfigMistake&) = default;
};

/// What the documents say: `policies` are sorted as in Policy.
struct Config {
  std::vector<DevicePolicy> policies;
  Limits limits;
  bool limits_given = false;  ///< False: no ControllerLimits document, `limits` are the defaults.
  /// What is allowed and yet can hardly be meant; sorted by file and place, at most 200.
  std::vector<ConfigMistake> warnings;
  friend bool operator==(const Config&, const Config&) = default;
};

/// A valid configuration, or every mistake in it (at most 200), sorted by file and place.
using ConfigResult = std::expected<Config, std::vector<ConfigMistake>>;

/// Reads DeviceHealthPolicy and ControllerLimits documents. At most 1 MiB a file, 200 policies; takes less than a
/// second and 64 MiB whatever the input.
[[nodiscard]] ConfigResult parse_config(std::span<const ConfigFile> files);

/// The same for a ConfigMap's data: each key ends in `.yaml` or `.yml` and is a file, in the order of the keys.
[[nodiscard]] ConfigResult parse_config_map(std::string_view ns, std::string_view name,
                                            const std::map<std::string, std::string, std::less<>>& data);

/// Reads the pause of a part that an annotation holds: a map as one of `pauses`, in YAML or JSON. An error: its first
/// mistake.
[[nodiscard]] std::expected<ScopedPause, ConfigMistake> parse_pause(const ConfigFile& file);

}  // namespace dhc
