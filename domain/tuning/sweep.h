#pragma once
#include <optional>
#include <string>
#include <vector>

#include "domain/policy/policy.h"
#include "domain/tuning/front.h"
#include "domain/tuning/grid.h"
#include "domain/tuning/limit_counts.h"

namespace dhc::tuning {

/// What is tried beside the grid: what a cluster runs with.
struct Running {
  std::string name;  ///< Of the policy; empty: the shipped defaults.
  Choice choice;
  Limits limits;
  bool evicts = true;  ///< False: pods stay on a bad device, and say when it is well.
};

/// The Pareto line of one grid, and where the running configuration stands.
struct Line {
  std::size_t choices = 0;
  std::vector<Point> points;
  Point running;
  Distance distance;
};

/// The best choice for a bound on the time held, whoever speaks.
struct Budget {
  double percent = 0;           ///< At most so much of the fleet's time, with either witness.
  std::optional<Point> silent;  ///< None: every choice holds more.
  std::optional<Point> spoken;  ///< The same choice.
};

struct BrakeRow {
  Limits limits;
  bool is_running = false;
  BrakeCount cluster;
  BrakeCount node;
};

struct CapRow {
  std::string key;  ///< `caps.cluster` and so on.
  Cap cap;
  bool is_running = false;
  CapCount count;
};

/// All that is known of a trace's choices.
struct Sweep {
  Running running;
  Line silent;  ///< Held against repeats, where nobody speaks of a tainted device;
  Line spoken;  ///< and where its driver does.
  std::vector<Budget> budgets;
  std::vector<Point> after;  ///< By `after`; all else as running, nobody speaks.
  Line after_line;           ///< Of these, waiting against incidents. Empty: the trace cannot tell.
  std::vector<BrakeRow> brake;
  std::vector<CapRow> caps;  ///< `caps.node` only where the trace knows nodes.
};

/// What a cluster runs with that has this policy; the shipped defaults without one.
[[nodiscard]] Running running_of(const DevicePolicy* policy, const Limits& limits);

/// Tries every choice of the grid, and the running one.
[[nodiscard]] Sweep sweep(const FaultTrace& trace, const Running& running, const Grid& grid);

}  // namespace dhc::tuning
