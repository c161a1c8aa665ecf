#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/api/store.h"
#include "simulator/controllers/cached_view.h"
#include "simulator/controllers/index.h"
#include "simulator/controllers/job_indexes.h"
#include "simulator/controllers/machine.h"
#include "simulator/controllers/taints.h"
#include "simulator/controllers/timers.h"

namespace dhc::sim {

/// How long each part of the cluster takes; scripts may change them at any time.
struct Lags {
  Millis controller{50};         ///< Until a workload controller creates or deletes pods.
  Millis schedule{100};          ///< Until the scheduler looks at a new pod.
  Millis admit{200};             ///< Until a kubelet admits a pod bound to its node.
  Millis start{300};             ///< From admission to Running.
  Millis pod_sync{1000};         ///< A kubelet looks at its pods' devices once in this time. **Source:** PLEG's period.
  Millis node_status{1000};      ///< From a health report to the node's allocatable: up to 10 s on a default kubelet.
  Millis restarted_node{150};    ///< From a kubelet's restart to a node status without its plugins' devices.
  Millis restarted_pods{850};    ///< From there to pods that say Healthy of all devices: seen on 1.37.1.
  Millis registered_node{2000};  ///< From a plugin's registration to the node's status: seen on 1.37.1.
  Millis plugin_gone{5000};      ///< From a plugin's death to allocatable 0: within 10 s on 1.37.1.
  Millis driver_unknown{3000};   ///< From a driver's death to Unknown: within 5 s on 1.37.1.
  Millis slices_deleted{30000};  ///< From a driver's death to the end of its slices: about 30 s on 1.37.1.
  Millis slices_published{1000};  ///< From a driver's start to its slices.
  Millis claim_release{500};      ///< From a pod's end to the end of its reservation: within 1 s on 1.37.1.
  Millis sigterm_exit{100};       ///< From SIGTERM to the exit of a container that heeds it.
  Millis removal{500};            ///< From a terminal phase to the end of a deleted pod.
  Millis rule_condition{300};     ///< From a rule's change to its EvictionInProgress: within 0.5 s on 1.37.1.
  Millis taint_eviction{1000};    ///< From a NoExecute device taint to the deletion: 1 s on 1.37.1.
  Millis job_batch{1000};   ///< The Job controller looks at a pod's change after this. **Source:** syncJobBatchPeriod.
  Millis job_cache{0};      ///< How far the Job controller's Jobs are behind.
  Millis job_pod_cache{0};  ///< How far the Job controller's pods are behind.
  Millis budget{0};         ///< How far the disruption controller is behind.
};

/// What the Job controller keeps in memory of one Job.
struct JobMemory {
  Name name;
  std::set<std::string> counted;     ///< Pods that are in the status already, by UID.
  std::set<std::string> backed_off;  ///< Pods whose failure has made a back-off step, by UID.
  std::set<std::string> expected;    ///< Pods created and not yet seen in the cache, by UID.
  int failures = 0;                  ///< Since the last success.
  MonoTime last_failure;
  IndexMemory indexes;
  std::optional<MonoTime> sync_at;
};

/// What the scheduler has last found no place for.
struct Tried {
  std::uint64_t room = 0;  ///< The index's, then.
  ObjectPtr pod;
  bool rules_served = true;
};

/// All that controllers and kubelets work on besides the API's objects.
struct State {
  explicit State(std::uint64_t seed) : store(seed), job_view(Res::Jobs), job_pod_view(Res::Pods) {}

  /// Brings the index up to date.
  void follow();
  /// What the node's kubelet and drivers know has been changed from outside.
  void touch(const std::string& node);
  /// Has `look` called for each of these, in their order, as they were before. Those for whom it wished are looked at
  /// again in the next round; others rest until something touches them.
  template <class Key>
  void look_at(std::set<Key>& restless, const std::function<void(const Key&)>& look);

  Store store;
  Index index;
  Timers timers;
  Lags lags;
  std::map<std::string, Machine> machines;
  CachedView job_view;
  CachedView job_pod_view;
  std::map<std::string, JobMemory> jobs;  ///< By UID.
  std::map<std::string, Tried> tried;     ///< By the pod's UID.
  int pods_started = 0;
  DeviceTaints taints;
  bool rules_served = true;  ///< False: no DeviceTaintRules, and nobody heeds those that are stored.

  [[nodiscard]] MonoTime mono() const { return store.now().mono; }
};

template <class Key>
void State::look_at(std::set<Key>& restless, const std::function<void(const Key&)>& look) {
  follow();
  for (const auto& key : std::exchange(restless, {})) {
    const auto before = timers.wishes();
    look(key);
    if (timers.wishes() != before) restless.insert(key);
  }
}

/// The extended resource that is short on the node; empty if all fit. It trusts the Node's status, which may be older
/// than what the kubelet knows: that gap rejects pods. **Source:** seen on 1.37.1.
[[nodiscard]] std::string short_of(const State& state, const Json& node, const Json& pod);

// Each looks at what is restless and does what is due; they are called in turn until nothing changes.
void run_claims(State& state);
void run_scheduler(State& state);
void run_kubelets(State& state);
void run_drivers(State& state);
void run_replicas(State& state);
void run_jobs(State& state);
void run_budgets(State& state);
void run_taint_eviction(State& state);
void run_garbage(State& state);

/// The pods of these names that there are.
[[nodiscard]] std::vector<ObjectPtr> pods_named(const Store& store, const std::set<Name>& names);

/// Copies of the live pods, in the store's order, that `keep` accepts.
[[nodiscard]] std::vector<ObjectPtr> pods_where(const Store& store, const std::function<bool(const Json&)>& keep);

/// True if the pod's controller owner has this UID.
[[nodiscard]] bool is_owned_by(const Json& object, const std::string& uid);

/// Creates a pod from a template for an owner; `name` empty: the owner's name and a random suffix.
ObjectPtr create_pod(State& state, const Json& owner, const Json& pod_template, const std::string& name);

/// The name of the ResourceClaim that stands behind the pod's claim, or empty while there is none.
[[nodiscard]] std::string claim_name_of(const Json& pod, const Json& pod_claim);

/// What the containers of a pod ask for of each extended resource.
[[nodiscard]] std::map<std::string, std::int64_t> extended_requests(const Json& pod);

}  // namespace dhc::sim
