#include "domain/tuning/front.h"

#include <algorithm>
#include <ranges>
#include <tuple>

namespace dhc::tuning {

Cost held_and_repeats(const Outcome& outcome) {
  return {outcome.held_well.count(), static_cast<std::int64_t>(outcome.repeats)};
}

Cost waited_and_incidents(const Outcome& outcome) {
  return {outcome.waited.count(), static_cast<std::int64_t>(outcome.incidents)};
}

bool beats(const Cost& a, const Cost& b) { return a.first <= b.first && a.second <= b.second && !(a == b); }

std::vector<Point> line_of(const std::vector<Point>& points, Measure measure) {
  std::vector<Point> sorted = points;
  std::ranges::stable_sort(sorted, {}, [&](const Point& point) {
    const auto cost = measure(point.outcome);
    return std::tuple(cost.first, cost.second);
  });
  std::vector<Point> line;
  for (auto& point : sorted) {
    const auto cost = measure(point.outcome);
    if (!line.empty() && measure(line.back().outcome) == cost) {
      ++line.back().alike;
    } else if (line.empty() || cost.second < measure(line.back().outcome).second) {
      line.push_back(std::move(point));
    }
  }
  return line;
}

Distance distance_of(const Point& point, const std::vector<Point>& line, Measure measure) {
  const auto cost = measure(point.outcome);
  Distance distance;
  for (const Point& other : line) {
    const auto there = measure(other.outcome);
    if (!beats(there, cost)) continue;
    // The line goes down in the second measure as it goes up in the first.
    if (there.first < cost.first && !distance.less_first) distance.less_first = other;
    if (there.second < cost.second) distance.less_second = other;
  }
  return distance;
}

}  // namespace dhc::tuning
