#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/now.h"
#include "domain/cluster/fresh_read.h"
#include "domain/cluster/owner_sight.h"
#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/delivery.h"
#include "reconcilers/eviction/action.h"
#include "reconcilers/hand_over/action.h"
#include "reconcilers/incident_state/action.h"
#include "reconcilers/job_retry/action.h"
#include "reconcilers/notice/action.h"
#include "reconcilers/owners/action.h"
#include "reconcilers/status/action.h"
#include "reconcilers/taint/action.h"

namespace dhc {

/// All that the controller can ask for. Each reconciler brings its own alternatives.
using Action = std::variant<eviction::EvictPod, notice::ApplyCondition, notice::EmitEvent, taint::ApplyRule,
                            taint::DeleteRule, taint::PatchNodeTaint, hand_over::ApplyNodeConditions,
                            hand_over::MakeObject, hand_over::RemoveObject, incident_state::WriteState,
                            job_retry::PatchJob, job_retry::RecreateJob, owners::ReadOwner, status::WriteStatus>;

/// What became of one action.
struct Outcome {
  Action action;
  Status status;
  std::optional<OwnerSight> sight = {};  ///< Of ReadOwner: what was found.
  FreshReads reads = {};                 ///< Of EvictPod: what was read before and after it.
  std::string stored_uid = {};           ///< Of ApplyRule: the rule that the server has stored; empty: not known.
};

/// A new valid configuration.
struct PolicyChanged {
  std::shared_ptr<const Policy> policy;
};

/// The configuration could not be read; the last good one stays.
struct PolicyRejected {
  std::string why;                ///< The first mistake, with its place.
  std::optional<Subject> source;  ///< The ConfigMap, if it came from one: the Event goes there.
};

/// Whether we lead from now on: who does not lead decides and writes nothing.
struct Leading {
  bool leads = false;
};

/// The state ConfigMap of 0.1.0, as it was last seen.
struct EarlierState {
  std::optional<k8s::ConfigMap> map;  ///< None: there is none.
};

/// How far the API server's clock is ahead of ours, as far as that matters; negative: behind.
struct ServerClockSeen {
  Millis ahead{0};
};

/// Whether the webhook's receiver is told.
struct WebhookSeen {
  std::string problem;  ///< What is wrong and what to do, of bounded length; empty: nothing.
};

/// All that enters the controller.
using Message = std::variant<k8s::Delivery, Outcome, PolicyChanged, PolicyRejected, Leading, EarlierState,
                             ServerClockSeen, WebhookSeen>;

}  // namespace dhc
