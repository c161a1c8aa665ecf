#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/foresight.h"
#include "base/now.h"

namespace dhc::cli {

/// What one configuration would do.
struct PlanSide {
  std::string source;                                         ///< Where it was read, for people.
  std::vector<std::pair<std::string, std::string>> policies;  ///< Name and mode, in the order in which they are asked.
  Foresight foresight;
};

/// What `plan` has found out. One of the sides at least is there.
struct PlanReport {
  std::string cluster;
  Millis horizon{0};
  std::optional<PlanSide> today;   ///< The configuration in the cluster.
  std::optional<PlanSide> wanted;  ///< The one of the files.
  std::vector<std::string> remarks;
};

/// A table for people: a row for each subject and device, `~` in front where the sides differ, and totals. `is_wide`:
/// below each row the message of each reason in it.
[[nodiscard]] std::string plan_text(const PlanReport& report, bool is_wide = false);

/// The same with every message, as one JSON object on one line.
[[nodiscard]] std::string plan_json(const PlanReport& report);

/// And as a YAML document.
[[nodiscard]] std::string plan_yaml(const PlanReport& report);

}  // namespace dhc::cli
