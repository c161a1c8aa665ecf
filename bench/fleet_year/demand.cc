#include "bench/fleet_year/demand.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace dhc::year {
namespace {

constexpr int kReplicas = 24;  // of one service of one-GPU pods

bool takes_server(const PodKind& kind, int devices) { return kind.gpus >= devices; }

}  // namespace

Millis job_length(double share) {
  struct Point {
    double share;
    double hours;
  };
  static constexpr std::array kCurve = {Point{0, 24.5},    Point{0.1, 28.3},  Point{0.25, 31.7}, Point{0.5, 47.4},
                                        Point{0.75, 87.6}, Point{0.9, 370.1}, Point{1, 650.6}};
  auto next = std::ranges::find_if(kCurve, [&](const Point& point) { return point.share > share; });
  if (next == kCurve.end()) next = std::prev(kCurve.end());
  const auto& from = *std::prev(next);
  const double hours = std::lerp(from.hours, next->hours, (share - from.share) / (next->share - from.share));
  return std::chrono::round<Millis>(std::chrono::duration<double, std::ratio<3600>>(hours));
}

Demand demand_for(int nodes, int devices, double filled) {
  Demand demand;
  double whole = 0;
  double all = 0;
  for (const auto& kind : kPodKinds) {
    all += kind.share;
    if (takes_server(kind, devices)) whole += kind.share;
  }
  const int whole_nodes = std::max(1, static_cast<int>(std::lround(nodes * whole / all)));
  for (int i = 0; i < nodes; ++i) demand.pools.emplace_back(i < nodes - whole_nodes ? "shared" : "whole");
  const double gpus = nodes * devices * filled / all;
  for (const auto& kind : kPodKinds) {
    const std::string pool = takes_server(kind, devices) ? "whole" : "shared";
    const int each = std::min(kind.gpus, devices);
    int pods = std::max(1, static_cast<int>(std::floor(gpus * kind.share / each)));
    if (kind.job) {
      demand.slots.insert(demand.slots.end(), static_cast<std::size_t>(pods), {.pool = pool, .gpus = each});
      continue;
    }
    for (int number = 0; pods > 0; ++number) {
      const int replicas = std::min(pods, kReplicas);
      demand.services.push_back(
          {.name = fmt::format("service-{}-{}", each, number), .pool = pool, .gpus = each, .replicas = replicas});
      pods -= replicas;
    }
  }
  return demand;
}

}  // namespace dhc::year
