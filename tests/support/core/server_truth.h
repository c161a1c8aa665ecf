#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"
#include "reconcilers/eviction/action.h"
#include "reconcilers/job_retry/action.h"
#include "reconcilers/taint/action.h"
#include "simulator/script/cluster.h"
#include "tests/support/core/slice_taints.h"
#include "tests/support/core/taken_out.h"

namespace dhc::test {

/// Holds what a controller does against what the simulated server knows at that moment: the invariants that its
/// requests alone cannot break. It reads the cluster's own objects and none of the controller's code.
class ServerTruth {
 public:
  explicit ServerTruth(const sim::Cluster& cluster) : cluster_(cluster), taken_(cluster) {}

  /// The policy that the controller has been told. A new process knows nothing of the brake unless it keeps a state.
  void told(const Policy& policy);
  void restarted();
  /// Somebody has deleted or spoilt what the controller keeps in the cluster: what is asked of its memory begins anew.
  void memory_lost();
  /// Somebody has set a clock: what is written down of a wait counts by the wall clock, and is longer or shorter by
  /// that.
  void clock_set(Millis by);
  /// A watch that comes back when the new versions have passed its own misses what lies between, as every client's
  /// does: what the controller says of pods, and brakes, are judged again when it has begun anew. A device that was bad
  /// before counts for a brake when it has been well in between.
  void etcd_restored();

  /// Around the requests of one eviction, `calm` as in `look`; afterwards false: the pod stands as it stood.
  void before(const eviction::EvictPod& eviction, bool calm, const Now& now);
  bool after(const eviction::EvictPod& eviction, const Now& now);

  /// After the request of a taint, or of a Job's retry; `calm` as in `look`.
  void after(const taint::ApplyRule& rule, bool calm, const Now& now);
  void after(const job_retry::PatchJob& patch, bool calm, const Now& now);

  /// After each step. `calm`: the controller leads and each of its watches has told it all.
  void look(const std::vector<Verdict>& verdicts, bool calm, const Now& now);

  /// What was broken since the last call.
  [[nodiscard]] std::vector<std::string> take_broken() { return std::exchange(broken_, {}); }

 private:
  void forget();
  /// A device as the kubelet's report names it: driver or resource, and which.
  struct Device {
    std::string scope;
    std::string node;
    std::string id;
    friend auto operator<=>(const Device&, const Device&) = default;
  };
  struct Pod {
    std::string name;
    std::string node;
    std::string owner;         // UID of its controller; else its own name
    std::uint64_t number = 0;  // in the order in which they came
    std::int64_t grace = 0;
    bool is_live = false;            // Running and not being deleted
    std::map<Device, MonoTime> bad;  // since when a policy means it
  };
  struct Evicted {
    std::string uid;
    std::string node;
    std::string scope;
    Now at;
    MonoTime holds_until;
    std::string group;          // the shared claim whose holders go together, or the gang
    bool is_forgotten = false;  // by whoever edited what the controller remembers
  };
  /// A brake as its rules say it, of a driver or resource on one node or (empty) in the cluster.
  struct Engaged {
    MonoTime moves_from;  // when it engaged, or the last trial began
    std::optional<MonoTime> low_since;
    std::string tried;  // whose device is tried, as `to_string(DeviceKey)`
  };
  using Place = std::pair<std::string, std::string>;  // driver or resource, and node or nothing
  /// What counts against a brake.
  struct Tally {
    std::set<std::pair<std::string, std::string>> standing;
    std::set<std::pair<std::string, std::string>> recent;
    bool is_released = false;  // somebody has vouched for one of its devices
  };

  void say(std::string_view invariant, const eviction::EvictPod& eviction, std::string text);
  /// Whether what is done to the device is done although a brake holds it; in words.
  [[nodiscard]] std::optional<std::string> held_by_brake(const std::string& scope, const std::string& node,
                                                         const std::string& device, const Now& now) const;
  [[nodiscard]] std::map<Place, Tally> tally(const Now& now);
  [[nodiscard]] Millis at_most_since(MonoTime since, const Now& now) const;
  void read_pods(const Now& now);
  void read_pod(const sim::Json& pod, const Now& now);
  void add_tainted(const sim::Json& object, Pod& pod, const std::map<Device, MonoTime>& before, const Now& now) const;
  [[nodiscard]] std::string driver_of(const sim::Json& pod, std::string_view entry) const;
  [[nodiscard]] bool is_meant(const Device& device, const std::string& health) const;
  [[nodiscard]] std::string gang_of(const sim::Json& pod) const;
  [[nodiscard]] std::string group_of(const eviction::EvictPod& eviction, const sim::Json& pod) const;
  [[nodiscard]] bool goes_with_its_gang(const sim::Json& pod) const;
  [[nodiscard]] bool follows_its_gang(const sim::Json& pod, const Now& now) const;
  void check_group(const eviction::EvictPod& eviction, const sim::Json& pod);
  void check_credit(const eviction::EvictPod& eviction);
  void check_gang(const eviction::EvictPod& eviction, const sim::Json& pod, const Now& now);
  [[nodiscard]] bool shows_signal(const eviction::EvictPod& eviction, const sim::Json& pod) const;
  void check_slots(const eviction::EvictPod& eviction, const std::string& node, const Now& now);
  void check_again(const eviction::EvictPod& eviction, const Pod& pod, const Now& now);
  void check_rates(const eviction::EvictPod& eviction, const Now& now);
  void check_workload(const eviction::EvictPod& eviction, const Now& now);
  void check_brake(const eviction::EvictPod& eviction, const std::string& node, const Now& now);
  void look_at_brakes(bool calm, const Now& now);
  void look_at_reasons(const std::vector<Verdict>& verdicts, bool calm, const Now& now);
  [[nodiscard]] std::int64_t known(const std::string& scope, const std::string& node);
  [[nodiscard]] std::int64_t most_bad(const Place& place);
  void read_words();
  [[nodiscard]] bool is_excused(const Device& device, WallTime since, const Now& now);
  [[nodiscard]] bool is_released(const Place& place, WallTime since, const Now& now) const;

  const sim::Cluster& cluster_;
  Policy policy_;
  std::uint64_t seen_rv_ = 0;
  std::uint64_t server_ = 0;         // which start of the API server that is a version of
  std::map<std::string, Pod> pods_;  // by UID
  std::set<std::string> sick_;       // UIDs of those that are on a bad device
  std::set<TaintedDevice> tainted_;  // by their drivers, as a policy names it
  std::vector<Evicted> evicted_;
  /// By owner: when, and the number of the last pod that had come by then.
  std::map<std::pair<std::string, Device>, std::pair<MonoTime, std::uint64_t>> lost_;
  /// Devices that pods of a workload were evicted from, and when last; by workload and driver or resource.
  std::map<std::pair<std::string, std::string>, std::map<std::string, Now>> gone_;
  std::map<Place, std::pair<std::int64_t, std::uint64_t>> known_;  // how many, and as of which version
  std::map<Place, Engaged> brakes_;
  std::map<Place, MonoTime> exceeded_;  // since when more are bad than a brake lets be
  std::set<Device> ever_bad_;           // since the last restore
  std::set<Device> doubtful_;           // bad before etcd was restored, and not seen well since
  bool is_restored_ = false;            // and the pods have not been read since
  TakenOut taken_;
  /// What operators have written, each for its own node, device or (the policy's) cluster.
  struct NodeWords {
    std::string acknowledged;
    std::string released;
  };
  std::map<std::string, NodeWords> node_words_;
  std::set<TaintedDevice> rule_words_;
  std::pair<std::uint64_t, std::uint64_t> words_of_{};  // which start of the API server, and which version
  std::set<Device> excused_;                            // by them, until they are well
  MonoTime looked_at_{};
  std::vector<std::pair<MonoTime, Millis>> clock_sets_;
  std::optional<MonoTime> calm_since_;
  bool is_stale_ = false;
  sim::ObjectPtr before_;  // the pod of the eviction under way; null: it cannot be evicted
  std::uint64_t numbers_ = 0;
  std::set<std::string> unexplained_;  // UIDs that have been said
  std::vector<std::string> broken_;
  std::map<std::string, MonoTime> begun_;  // gangs, by namespace and name: when a pod on a bad device went
  bool was_calm_ = false;
};

}  // namespace dhc::test
