#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/wake.h"
#include "domain/cluster/ailing_pod.h"
#include "domain/cluster/focus.h"
#include "domain/cluster/views.h"
#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/rollouts.h"
#include "domain/findings/suspects.h"
#include "domain/incidents/handed_objects.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/news.h"
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
  const Focus* focus = nullptr;                    ///< What is decided about anew; null: everything.
  std::vector<const AffectedPod*> in_focus = {};   ///< Of `affected_pods` those in focus, in their order.
  const Suspects* suspects = nullptr;              ///< Null: nobody is suspected.
  const Rollouts* rollouts = nullptr;              ///< What roll-outs have broken; null: nothing.
  const std::vector<AilingPod>* ailing = nullptr;  ///< What the state says of Jobs' pods on bad devices; null: nothing.
  const std::set<DeviceKey>* unmatched = nullptr;  ///< As `AffectedPods` says; null: every device may be.
  const HandedObjects* handed = nullptr;           ///< Objects that were made to hand nodes over; null: none.
  /// What the next leader is to tell the webhook again; null: nothing.
  const std::vector<RecentNews>* news = nullptr;
  ViewsAsked* views_asked = nullptr;  ///< Takes down which watches are asked for; null: nobody keeps it.
  bool looks_everywhere = false;      ///< For places at every node, as if nobody kept which may have some.
};

/// What one reconciler wants done and has to say: of the devices in focus, and what it says anew with each plan.
template <class A>
struct Planned {
  std::vector<A> actions;
  std::vector<Verdict> verdicts;
  std::vector<DeviceKey> about;  ///< Of each verdict: the device in focus; without a name: none, said with each plan.
  std::optional<MonoTime> wake_at;      ///< When what is said with each plan would change by time alone.
  std::map<DeviceKey, MonoTime> wakes;  ///< When what is decided about a device would.
  std::set<DeviceKey> again;            ///< Devices to be asked about by the next plan, whatever happens.
  std::set<std::string> pods_again;     ///< The same of pods, by UID.

  void say(const DeviceKey& key, Verdict verdict) {
    about.resize(verdicts.size());
    about.push_back(key);
    verdicts.push_back(std::move(verdict));
  }
  void wake(const DeviceKey& key, std::optional<MonoTime> at) {
    if (!at) return;
    auto& known = wakes.try_emplace(key, *at).first->second;
    known = std::min(known, *at);
  }
};

}  // namespace dhc
