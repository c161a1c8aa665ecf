#pragma once
#include <array>
#include <string>
#include <vector>

#include "base/now.h"
#include "bench/fleet_year/dice.h"

namespace dhc::year {

/// Servers of a fleet that run the same sort of work: without that, no server is ever free for a pod that needs all of
/// it, because the scheduler spreads.
inline constexpr std::string_view kPoolLabel = "pool";

/// How many GPUs each sort of pod holds at a time, in shares: figures derived from the 81 pods of `openb` that ran for
/// a day or more and hold 90 % of all its GPU-hours. Latency-sensitive pods (LS) count as services, all others as Jobs.
/// **Source:** github.com/alibaba/clusterdata, cluster-trace-gpu-v2023 (7a6c496); Weng et al., ATC'23.
struct PodKind {
  bool job = false;
  int gpus = 1;
  double share = 0;  ///< Of the GPU-hours.
};
inline constexpr std::array kPodKinds = {
    PodKind{.job = false, .gpus = 1, .share = 0.824}, PodKind{.job = false, .gpus = 8, .share = 0.016},
    PodKind{.job = true, .gpus = 1, .share = 0.051},  PodKind{.job = true, .gpus = 2, .share = 0.009},
    PodKind{.job = true, .gpus = 8, .share = 0.100},
};

/// How long a Job's pod works: a point of the curve through the same pods' 0, 10, 25, 50, 75, 90 and 100 %.
[[nodiscard]] Millis job_length(double share);

/// A service: pods that run without end.
struct Service {
  std::string name;
  std::string pool;
  int gpus = 1;
  int replicas = 1;
};

/// A place in the demand where always one Job runs: when one has ended, or is lost, another begins.
struct JobSlot {
  std::string pool;
  int gpus = 1;
};

/// What a fleet is asked to run, all the time.
struct Demand {
  std::vector<std::string> pools;  ///< Of each node.
  std::vector<Service> services;
  std::vector<JobSlot> slots;
};

/// Fills the fleet to `filled` (a share of its GPUs).
[[nodiscard]] Demand demand_for(int nodes, int devices, double filled);

}  // namespace dhc::year
