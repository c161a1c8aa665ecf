#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simulator/api/api.h"
#include "simulator/api/faults.h"
#include "simulator/controllers/state.h"
#include "simulator/node/shape.h"

namespace dhc::sim {

/// One request as it was answered: what tests and the demo look back on.
struct RequestRecord {
  Now at;
  k8s::Method method = k8s::Method::Get;
  std::string target;
  std::string body;
  unsigned status = 0;
};

/// What a new node has.
struct NodeShape {
  std::string name;
  std::map<std::string, int> plugins;  ///< Resource -> devices, named by its last part: `GPU-0`, `GPU-1`, ...
  std::map<std::string, int> drivers;  ///< DRA driver -> devices `gpu-0`, `gpu-1`, ...
  std::map<std::string, std::string> labels;
};

/// A budget for the pods with one label.
struct BudgetShape {
  std::string ns = "default";
  std::string name;
  std::map<std::string, std::string> match_labels;
  std::optional<int> min_available;
  std::optional<int> max_unavailable;
};

/// What a Job asks for; the pods are in `shape`.
struct JobShape {
  std::string ns = "default";
  std::string name;
  int parallelism = 1;
  int completions = 1;
  int backoff_limit = 6;
  bool indexed = false;
  bool replace_when_failed = false;             ///< podReplacementPolicy Failed.
  std::optional<int> limit_per_index = {};      ///< backoffLimitPerIndex; of an Indexed Job.
  std::optional<int> most_failed_indexes = {};  ///< maxFailedIndexes.
  std::string ignore_condition;                 ///< A podFailurePolicy that ignores pods with this condition, or empty.
  PodShape shape;
};

/// A whole cluster as a value: API server, scheduler, controllers, kubelets, devices. Nothing in it waits or reads a
/// clock: `step` and `handle` are told the time. Same seed and same calls, same bytes. One thread.
class Cluster {
 public:
  Cluster(std::uint64_t seed, const Now& start);

  /// Everything that is due at `now` happens.
  void step(const Now& now);

  /// When `step` would next do something by time alone.
  [[nodiscard]] std::optional<MonoTime> next_wake() const;

  /// Answers one request, then lets the cluster react.
  [[nodiscard]] Answer handle(const k8s::Request& request, const Now& now);

  [[nodiscard]] Store& store() { return state_.store; }
  [[nodiscard]] const Store& store() const { return state_.store; }
  [[nodiscard]] Lags& lags() { return state_.lags; }
  [[nodiscard]] ApiSettings& settings() { return settings_; }
  [[nodiscard]] FaultScript& faults() { return faults_; }
  [[nodiscard]] const Now& now() const { return state_.store.now(); }

  /// The requests so far, oldest first, at most the last 10,000.
  [[nodiscard]] const std::deque<RequestRecord>& requests() const { return requests_; }
  /// Those among them that write and were accepted.
  [[nodiscard]] std::vector<RequestRecord> writes() const;
  /// The pods that were evicted (201), as `namespace/name`, in order.
  [[nodiscard]] std::vector<std::string> evictions() const;

  // What there is.
  void add_namespace(const std::string& name, const std::map<std::string, std::string>& labels = {},
                     const std::map<std::string, std::string>& annotations = {});
  void add_node(const NodeShape& shape);
  void remove_node(const std::string& name);
  void add_budget(const BudgetShape& shape);
  /// Serves PodGroups from now on, if it did not. `mode` is `single` or `all`. A `claim` of the group's pods is
  /// reserved for the group and not for them.
  void add_pod_group(const std::string& ns, const std::string& name, const std::string& mode,
                     const std::string& claim = {});
  void create_deployment(const std::string& ns, const std::string& name, int replicas, PodShape shape,
                         const std::map<std::string, std::string>& annotations = {});
  void create_stateful_set(const std::string& ns, const std::string& name, int replicas, PodShape shape);
  void create_daemon_set(const std::string& ns, const std::string& name, PodShape shape);
  void create_job(JobShape shape);
  void create_pod(const std::string& ns, const std::string& name, const PodShape& shape);
  /// A standalone ResourceClaim that pods may share.
  void create_claim(const std::string& ns, const std::string& name, const std::string& device_class, int count);
  void set_config_map(const std::string& ns, const std::string& name, const std::map<std::string, std::string>& data);

  // What befalls it.
  void set_device_health(const std::string& node, const std::string& device, std::string_view health,
                         const std::string& message = {});
  /// The device is no longer listed by its plugin or driver; `restore_device` lists it again, healthy.
  void vanish_device(const std::string& node, const std::string& device);
  void restore_device(const std::string& node, const std::string& resource_or_driver, const std::string& device);
  void taint_device(const std::string& node, const std::string& device, const DeviceTaint& taint);
  void untaint_device(const std::string& node, const std::string& device);
  /// A new card in the same place: healthy, untainted, with another `uuid`.
  void replace_device(const std::string& node, const std::string& device);
  /// The driver publishes that these devices draw on one set of counters, as partitions of one card do.
  void share_counters(const std::string& node, const std::vector<std::string>& devices, const std::string& set);
  /// The driver says nothing about its devices there: each is Unknown.
  void mute_driver(const std::string& node, const std::string& driver);
  /// The driver makes the `uuid` of each of its devices there of the node's name, as Google's does.
  void name_by_node(const std::string& node, const std::string& driver);
  /// Whether the node's kubelet writes its devices' health into pods: its feature gate ResourceHealthStatus.
  void report_health(const std::string& node, bool reports);
  void kill_plugin(const std::string& node, const std::string& resource);
  void start_plugin(const std::string& node, const std::string& resource);
  void kill_driver(const std::string& node, const std::string& driver);
  void start_driver(const std::string& node, const std::string& driver);
  /// The pod's containers end and begin anew at once.
  void restart_containers(const std::string& ns, const std::string& name);
  /// The driver or plugin of that name begins anew and has forgotten what it knew: it calls every device healthy and
  /// publishes none of its taints. Back so soon that nothing of it reads Unknown and no slice is deleted.
  void forget_health(const std::string& node, const std::string& resource_or_driver);
  /// The machine boots: another boot ID, every container and the kubelet begin anew, drivers and plugins have forgotten
  /// what they knew.
  void reboot(const std::string& node, Millis plugins_register_after);
  /// The kubelet forgets its plugins until they register again.
  void restart_kubelet(const std::string& node, Millis plugins_register_after);
  void set_node_ready(const std::string& node, bool ready);
  void cordon(const std::string& node, bool unschedulable);
  /// As an administrator's tool writes it. **Source:** kubernetes.io, "Node lifecycle conditions".
  void set_node_condition(const std::string& node, const std::string& type, const std::string& status);
  /// Ends a pod's containers with that exit code.
  void crash_pod(const std::string& ns, const std::string& name, int exit_code);
  /// The API server comes back with the kind or without it: every watch is cut, what is stored stays. Without
  /// DeviceTaintRules nobody heeds the stored ones.
  void serve(Res res, bool served);
  /// etcd is restored from `store().back_up()` of earlier; kubelets go on, controllers begin anew.
  void restore_etcd(const Store& backup);
  /// Forgets history: older watches are answered with 410.
  void compact() { state_.store.compact(); }

  // What an operator does with kubectl; not among `requests` and `writes`.
  Answer kubectl_create(Res res, const Json& object);
  /// As `kubectl patch --type=merge` and `kubectl edit` do it: the fields that change are the operator's from now on.
  Answer kubectl_patch(Res res, const std::string& ns, const std::string& name, const Json& patch);
  Answer kubectl_delete(Res res, const std::string& ns, const std::string& name);
  /// Deletes the pods of a namespace that are on the node.
  void kubectl_delete_pods_on(const std::string& ns, const std::string& node);

  // What is seen.
  [[nodiscard]] ObjectPtr get(Res res, const std::string& ns, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> pod_names(const std::string& ns) const;
  /// The pods that hold a device, as `namespace/name`.
  [[nodiscard]] std::vector<std::string> holders(const std::string& node, const std::string& device) const;

 private:
  Machine& machine(const std::string& node);
  void ensure_claim_template(const std::string& ns, const PodShape& shape);
  void ensure_device_class(const std::string& driver);
  void changed() { dirty_ = true; }
  Answer kubectl(k8s::Method method, const std::string& path, const std::string& body, std::string_view content);

  State state_;
  ApiSettings settings_;
  FaultScript faults_;
  std::deque<RequestRecord> requests_;
  bool dirty_ = true;
};

}  // namespace dhc::sim
