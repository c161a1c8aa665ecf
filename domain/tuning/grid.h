#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "domain/policy/policy.h"

namespace dhc::tuning {

/// A cap's values to try.
struct CapGrid {
  std::vector<std::int64_t> percent;
  std::vector<std::int64_t> at_least;
};

/// The values to try. A list that is empty has the running configuration's value alone.
struct Grid {
  std::vector<Millis> after;
  std::vector<Millis> hold;
  std::vector<Millis> half_life;
  std::vector<double> quarantine_above;
  std::vector<std::int64_t> brake_percent;
  std::vector<std::int64_t> brake_at_least;
  std::vector<Millis> brake_within;
  CapGrid cap_cluster;
  CapGrid cap_node;
  CapGrid cap_per_day;
};

/// More choices of one table than this are refused: a sweep of a year takes seconds.
inline constexpr std::size_t kMostChoices = 20'000;

/// What is tried where nothing else is asked for.
[[nodiscard]] Grid default_grid();

/// Takes in `hold=1h,2h,4h`: these values and no others. Values are read as a policy's are, with the same bounds.
/// Refused in words that name the value and the remedy.
[[nodiscard]] std::expected<void, std::string> take_axis(Grid& grid, std::string_view text);

/// Refused if the grid has more than `kMostChoices` of one table.
[[nodiscard]] std::expected<void, std::string> check_size(const Grid& grid);

}  // namespace dhc::tuning
