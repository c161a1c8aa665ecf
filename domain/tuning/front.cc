#include "domain/tuning/front.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace dhc::tuning {

Cost held_and_repeats(const Outcome& outcome) {
  return {outcome.held_well.count(), static_cast<std::int64_t>(outcome.repeats)};
}

Cost waited_and_incidents(const Outcome& outcome) {
  return {outcome.waited.count(), static_cast<std::int64_t>(outcome.incidents)};
}

bool beats(const Cost& a, const Cost& b) { return a.first <= b.first && a.second <= b.second && !(a == b); }

std::vector<Point> line_of(const std::vector<Point>& points, Measure measure) {
  std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> sorted;
  sorted.reserve(points.size());
  for (const auto& point : points) {
    const auto cost = measure(point.outcome);
    sorted.emplace_back(cost.first, cost.second, sorted.size());
  }
  // Of those that are alike the first comes first. Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(sorted);
  std::vector<Point> line;
  for (const auto& [first, second, index] : sorted) {
    if (!line.empty() && measure(line.back().outcome) == Cost{first, second}) {
      ++line.back().alike;
    } else if (line.empty() || second < measure(line.back().outcome).second) {
      line.push_back(points[index]);
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
