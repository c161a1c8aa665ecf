#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/fleet_year/year.h"

namespace dhc::year {

/// All runs of one contender under the same assumptions, by seed.
struct Runs {
  Kind contender = Kind::Nobody;
  std::vector<Year> years;
};

/// A mean and half the width of its 95 % confidence interval (Student's t); 0 of a single run.
struct Estimate {
  double mean = 0;
  double half_width = 0;
};
[[nodiscard]] Estimate estimate(const std::vector<double>& values);

/// One line of the table: what it shows, and how it is counted.
[[nodiscard]] std::string table_of(std::span<const Runs> all);

/// What of the GPU-hours that draining loses each contender keeps, seed by seed, in percent.
[[nodiscard]] Estimate kept_of_drain(const Runs& runs, const Runs& drain, bool device_faults_alone);

/// Where the GPU-hours of each contender went, as a picture: stacked bars, in SVG.
[[nodiscard]] std::string picture_of(std::span<const Runs> all);

}  // namespace dhc::year
