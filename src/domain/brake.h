#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/black_hole.h"
#include "domain/moment.h"
#include "domain/policy.h"
#include "domain/world.h"

namespace dhc {

/// What one brake covers: a driver or resource, on one node or (empty node) in the cluster.
struct BrakeScope {
  std::string scope;  ///< Driver or resource.
  std::string node;
  friend auto operator<=>(const BrakeScope&, const BrakeScope&) = default;
};

/// One engaged brake.
struct EngagedBrake {
  Moment since;
  Moment last_onset;         ///< It closes `within` after this.
  std::int64_t devices = 0;  ///< That became Unhealthy within the window, when it engaged or later.
  std::int64_t known = 0;    ///< Devices of the scope.
  bool nodes = false;        ///< Both count nodes of the scope, those that became black holes.
  friend bool operator==(const EngagedBrake&, const EngagedBrake&) = default;
};

/// What has engaged it, as `3 of 8 devices of R on node N became Unhealthy`.
[[nodiscard]] std::string to_string(const BrakeScope& scope, const EngagedBrake& brake);

/// Stops new evictions of a scope when too many of its devices became Unhealthy at once, or too many nodes
/// reject the pods that ask for them: then suspect the thermometer. Restarts release it only if the incidents are old
/// by our own conditions.
class Brake {
 public:
  /// Takes in the tracker's onsets, and the nodes that became black holes. Safe to repeat.
  void observe(const World& world, const Policy& policy, const BlackHoles& holes, const Now& now);

  /// The brake that holds this device on this node, if any.
  [[nodiscard]] const std::pair<const BrakeScope, EngagedBrake>* holding(const DeviceKey& key,
                                                                         const std::string& node) const;

  [[nodiscard]] const std::map<BrakeScope, EngagedBrake>& engaged() const { return engaged_; }

  /// When an engaged brake closes by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Limits& limits) const;

 private:
  std::map<BrakeScope, EngagedBrake> engaged_;
};

/// How many devices of a scope are known: node capacities (or the largest since boot), published or remembered pools,
/// and devices that pods hold.
[[nodiscard]] std::int64_t known_devices(const World& world, const BrakeScope& scope);

}  // namespace dhc
