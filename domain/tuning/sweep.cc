#include "domain/tuning/sweep.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dhc::tuning {

namespace {

/// The values to try, with the running one.
template <class T>
std::vector<T> with(std::vector<T> values, T running) {
  if (std::ranges::find(values, running) == values.end()) values.push_back(running);
  std::ranges::sort(values);
  return values;
}

Point point_of(const FaultTrace& trace, const Choice& choice, Witness witness) {
  return {.choice = choice, .outcome = outcome_of(trace, choice, witness)};
}

Line line(std::vector<Point> points, Point running, Measure measure) {
  Line found;
  found.choices = points.size();
  found.points = line_of(points, measure);
  found.distance = distance_of(running, found.points, measure);
  found.running = std::move(running);
  // Where it costs what another does, the line shows it.
  for (auto& point : found.points) {
    if (measure(point.outcome) == measure(found.running.outcome)) {
      point.choice = found.running.choice;
      point.outcome = found.running.outcome;
    }
  }
  return found;
}

/// Where the driver speaks, no hold runs out: one is as good as another.
std::vector<Millis> holds_of(const Choice& running, const Grid& grid, Witness witness) {
  if (witness == Witness::Driver) return {running.recover.hold};
  return with(grid.hold, running.recover.hold);
}

std::vector<Point> points_of(const FaultTrace& trace, const Choice& running, const Grid& grid, Witness witness) {
  std::vector<Point> points;
  for (const auto hold : holds_of(running, grid, witness)) {
    for (const auto half_life : with(grid.half_life, running.recover.half_life)) {
      for (const auto limit : with(grid.quarantine_above, running.recover.quarantine_above)) {
        auto choice = running;
        choice.recover.hold = hold;
        choice.recover.half_life = half_life;
        choice.recover.quarantine_above = limit;
        points.push_back(point_of(trace, choice, witness));
      }
    }
  }
  return points;
}

/// The choice with the fewest repeat failures, where nobody speaks before where the driver does; then the one that
/// holds least.
std::vector<Budget> budgets_of(const FaultTrace& trace, const std::vector<Point>& silent,
                               const std::vector<Point>& spoken) {
  std::vector<Budget> budgets;
  for (const double percent : {0.1, 0.25, 0.5, 1.0, 2.0, 5.0}) {
    Budget budget{.percent = percent, .silent = {}, .spoken = {}};
    const auto fits = [&](const Point& point) { return share_held(trace, point.outcome) * 100 <= percent; };
    std::tuple<std::size_t, std::size_t, Millis> least;
    for (std::size_t i = 0; i < silent.size(); ++i) {
      // Both lists turn fastest by the same two keys.
      const auto& other = spoken[i % spoken.size()];
      if (!fits(silent[i]) || !fits(other)) continue;
      const std::tuple cost(silent[i].outcome.repeats, other.outcome.repeats, silent[i].outcome.held_well);
      if (budget.silent && cost >= least) continue;
      budget.silent = silent[i];
      budget.spoken = other;
      budget.spoken->choice = silent[i].choice;
      least = cost;
    }
    budgets.push_back(std::move(budget));
  }
  return budgets;
}

std::vector<BrakeRow> sweep_brake(const FaultTrace& trace, const std::vector<Told>& told, const Limits& running,
                                  const Grid& grid) {
  std::vector<BrakeRow> rows;
  for (const auto within : with(grid.brake_within, running.brake_within)) {
    for (const auto at_least : with(grid.brake_at_least, running.brake_at_least)) {
      for (const auto percent : with(grid.brake_percent, running.brake_percent)) {
        auto limits = running;
        limits.brake_within = within;
        limits.brake_at_least = at_least;
        limits.brake_percent = percent;
        rows.push_back({.limits = limits,
                        .is_running = limits == running,
                        .cluster = brake_count_of(trace, told, limits, Reach::Cluster),
                        .node = brake_count_of(trace, told, limits, Reach::Node)});
      }
    }
  }
  return rows;
}

template <class Count>
void sweep_cap(std::string_view key, const Cap& running, const CapGrid& grid, const Count& count,
               std::vector<CapRow>& rows) {
  for (const auto percent : with(grid.percent, running.percent)) {
    for (const auto at_least : with(grid.at_least, running.at_least)) {
      const Cap cap{.percent = percent, .at_least = at_least};
      rows.push_back({.key = std::string(key), .cap = cap, .is_running = cap == running, .count = count(cap)});
    }
  }
}

}  // namespace

Running running_of(const DevicePolicy* policy, const Limits& limits) {
  const DevicePolicy defaults;
  const auto& rules = policy == nullptr ? defaults : *policy;
  return {.name = rules.name,
          .choice = {.after = rules.after, .recover = rules.recover},
          .limits = limits,
          .evicts = policy == nullptr || policy->evict.has_value()};
}

Sweep sweep(const FaultTrace& trace, const Running& running, const Grid& grid) {
  Sweep all;
  all.running = running;
  auto silent = points_of(trace, running.choice, grid, Witness::Nobody);
  auto spoken = points_of(trace, running.choice, grid, Witness::Driver);
  all.budgets = budgets_of(trace, silent, spoken);
  all.silent = line(std::move(silent), point_of(trace, running.choice, Witness::Nobody), held_and_repeats);
  all.spoken = line(std::move(spoken), point_of(trace, running.choice, Witness::Driver), held_and_repeats);
  if (trace.has_lengths) {
    for (const auto after : with(grid.after, running.choice.after)) {
      auto choice = running.choice;
      choice.after = after;
      all.after.push_back(point_of(trace, choice, Witness::Nobody));
    }
    all.after_line = line(all.after, all.silent.running, waited_and_incidents);
  }
  const auto told = lives_of(trace, running.choice, Witness::Nobody);
  all.brake = sweep_brake(trace, told, running.limits, grid);
  sweep_cap(
      "caps.cluster", running.limits.cap_cluster, grid.cap_cluster,
      [&](const Cap& cap) { return cap_count_of(trace, told, cap, Reach::Cluster); }, all.caps);
  const bool knows_nodes = std::ranges::any_of(trace.broken, [](const auto& device) { return !device.node.empty(); });
  if (knows_nodes) {
    sweep_cap(
        "caps.node", running.limits.cap_node, grid.cap_node,
        [&](const Cap& cap) { return cap_count_of(trace, told, cap, Reach::Node); }, all.caps);
  }
  sweep_cap(
      "caps.perDay", running.limits.cap_per_day, grid.cap_per_day,
      [&](const Cap& cap) { return day_count_of(trace, told, cap); }, all.caps);
  return all;
}

}  // namespace dhc::tuning
