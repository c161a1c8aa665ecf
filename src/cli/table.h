#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/now.h"

namespace dhc::cli {

using Line = std::vector<std::string>;

/// Columns as wide as their widest cell, two blanks between them; a line of one cell is no row of the table, and stands
/// as it is.
[[nodiscard]] std::string table_of(const std::vector<Line>& lines);

/// As kubectl writes ages: `12s`, `4m12s`, `3h5m`, `2d4h`, `31d`. A time ahead is `0s`.
[[nodiscard]] std::string age_text(Millis age);

/// `in 18s`, `due` if it is past, `-` if there is none.
[[nodiscard]] std::string due_text(const std::optional<WallTime>& at, WallTime now);

/// The time, or `-`.
[[nodiscard]] std::string time_text(const std::optional<WallTime>& at);

/// The text, or `-` if it is empty.
[[nodiscard]] std::string or_dash(std::string text);

/// JSON as a YAML document; every string is quoted, so that none is taken for a number or a flag.
[[nodiscard]] std::string yaml_text(const nlohmann::ordered_json& json);

}  // namespace dhc::cli
