#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "domain/tuning/outcome.h"

namespace dhc::tuning {

/// A choice and what it would have done.
struct Point {
  Choice choice;
  Outcome outcome;
  std::size_t alike = 0;  ///< Other choices with the same cost.
};

/// What a choice costs, in two measures; less is better in both.
struct Cost {
  std::int64_t first = 0;
  std::int64_t second = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
};
/// Time that devices are held although well, in ms, and repeat failures.
[[nodiscard]] Cost held_and_repeats(const Outcome& outcome);
/// Time that pods wait on a bad device, in ms, and incidents, each of which takes a pod away.
[[nodiscard]] Cost waited_and_incidents(const Outcome& outcome);

using Measure = Cost (*)(const Outcome&);

/// Whether `a` is no worse than `b` in either measure, and better in one.
[[nodiscard]] bool beats(const Cost& a, const Cost& b);

/// The Pareto line: the points that no other beats, by the first measure. Of those with the same cost the first stands
/// for all.
[[nodiscard]] std::vector<Point> line_of(const std::vector<Point>& points, Measure measure);

/// How far a point is from the line.
struct Distance {
  std::optional<Point> less_first;   ///< Of the points that are no worse in the second measure, the best in the first.
  std::optional<Point> less_second;  ///< And the other way round. Neither: the point is on the line.
  [[nodiscard]] bool is_on_line() const { return !less_first && !less_second; }
};
[[nodiscard]] Distance distance_of(const Point& point, const std::vector<Point>& line, Measure measure);

}  // namespace dhc::tuning
