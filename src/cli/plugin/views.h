#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/plugin/sight.h"
#include "cli/table.h"

namespace dhc::cli {

/// How a command prints.
enum class OutputFormat : std::uint8_t { Text, Wide, Json, Yaml };

/// A device and one pod that holds it, if any.
struct DeviceRow {
  const StatusDevice* device = nullptr;
  std::string holder = {};                 ///< `namespace/name`, or empty.
  const StatusVerdict* verdict = nullptr;  ///< What comes next for it.
};

/// One row for each device and pod that holds it, the most urgent first. `ns` takes those of pods there; empty: all.
[[nodiscard]] std::vector<DeviceRow> device_rows(const Sight& sight, std::string_view ns);

/// A table for people: the header first. `is_wide` adds taint, gate and the driver's words, and absolute times.
[[nodiscard]] std::vector<Line> devices_lines(const Sight& sight, std::string_view ns, bool is_wide);

/// The incidents that are open, and devices on probation.
[[nodiscard]] std::vector<Line> incidents_lines(const Sight& sight, std::string_view ns, bool is_wide);

/// Devices that keep failing, the worst first: quarantined, then by penalty as it is now.
[[nodiscard]] std::vector<Line> lemons_lines(const Sight& sight, bool is_wide);

/// The same as JSON, `{"controller": ..., "devices": [...]}`; all times are absolute.
[[nodiscard]] nlohmann::ordered_json devices_json(const Sight& sight, std::string_view ns);
[[nodiscard]] nlohmann::ordered_json incidents_json(const Sight& sight, std::string_view ns);
[[nodiscard]] nlohmann::ordered_json lemons_json(const Sight& sight);

/// A device and its history.
[[nodiscard]] nlohmann::ordered_json device_object(const Sight& sight, const StatusDevice& device);

/// One verdict, as `/verdicts` names its members.
[[nodiscard]] nlohmann::ordered_json verdict_object(const StatusVerdict& verdict);

/// The device's penalty as of `now`, by its policy's half-life; as it was written where the policy is gone.
[[nodiscard]] double penalty_now(const Sight& sight, const StatusDevice& device);

/// The policy of that name, or null.
[[nodiscard]] const StatusPolicy* policy_named(const ClusterStatus& status, std::string_view name);

}  // namespace dhc::cli
