#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/wake.h"
#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"
#include "domain/findings/affected_pod.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/node_case.h"
#include "domain/limits/brake.h"
#include "domain/limits/caps.h"
#include "domain/limits/request_tracker.h"
#include "domain/policy/policy.h"
#include "reconcilers/shared/coming_pods.h"

namespace dhc {

/// All that a plan may look at, for one turn.
struct PlanInput {
  const World& world;
  const Policy& policy;
  const RequestTracker& requests;
  const Brake& brake;
  const RejectingNodes& rejecting_nodes;
  const std::vector<AffectedPod>& affected_pods;
  const IncidentStore& incidents;
  const NodeCases& node_cases;
  const ComingPods& coming;
  const Caps& caps;  ///< As of this turn; whoever plans takes from a copy.
  /// The incident store's revision that is safely written; none: nothing must be undone, because it would not be
  /// remembered.
  std::optional<std::uint64_t> saved_revision;
  Now now;
};

/// What one reconciler wants done and has to say.
template <class A>
struct Planned {
  std::vector<A> actions;
  std::vector<Verdict> verdicts;
  std::optional<MonoTime> wake_at;  ///< When this plan would change by time alone.
};

}  // namespace dhc
