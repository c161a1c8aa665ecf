#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "domain/policy/policy.h"
#include "domain/tuning/life.h"

namespace dhc::tuning {

/// A device of a trace with what became of it.
struct Told {
  const BrokenDevice* device = nullptr;
  Life life;
};
[[nodiscard]] std::vector<Told> lives_of(const FaultTrace& trace, const Choice& choice, Witness witness);

/// Where a limit counts.
enum class Reach : std::uint8_t { Cluster, Node };

/// When a brake with these limits would have engaged on what pods met. What it would then have held back is not played:
/// each fault is met as without it.
struct BrakeCount {
  std::vector<WallTime> engaged;
  std::int64_t most = 0;  ///< So many cards of one scope turned bad within `brake.within`, at most.
};
[[nodiscard]] BrakeCount brake_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Limits& limits,
                                        Reach reach);

/// What one cap alone would have refused: an incident that it refuses holds no device. Devices of one card count once.
struct CapCount {
  std::vector<WallTime> refused;
  std::int64_t most = 0;  ///< So many counted at once, at most.
};
[[nodiscard]] CapCount cap_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap,
                                    Reach reach);
/// Likewise of `caps.perDay`, if each incident evicts one pod: each counts, also of one card.
[[nodiscard]] CapCount day_count_of(const FaultTrace& trace, const std::vector<Told>& told, const Cap& cap);

}  // namespace dhc::tuning
