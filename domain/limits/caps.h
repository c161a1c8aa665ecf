#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"
#include "domain/limits/cap_book.h"
#include "domain/policy/policy.h"

namespace dhc {

/// Requests for taints that are not seen yet, and until when they count.
struct AskedTaints {
  /// Those whose rule, or whose node's taint, stands in view count by that, for as long as it does.
  void drop_shown(const World& world, const CapBook& book);

  std::map<DeviceKey, MonoTime> devices;
  std::map<std::pair<std::string, std::string>, MonoTime> nodes;  ///< By (driver or resource, node).
};

/// All that the caps are judged on.
struct CapInput {
  const World& world;
  const Policy& policy;
  const CapBook& book;
  const RequestTracker& requests;
  const AskedTaints& asked;
  Now now;
};

/// How much of one driver's or resource's caps is used.
struct CapUse {
  std::string scope;                   ///< Driver or resource.
  std::int64_t out = 0;                ///< Devices out of service on our account, in the cluster,
  std::int64_t allowed = 0;            ///< and how many may be.
  std::int64_t known = 0;              ///< Of so many devices that are there.
  std::int64_t evictions = 0;          ///< Within 24 h,
  std::int64_t allowed_evictions = 0;  ///< and how many may be.
};

/// How much of each driver's or resource's devices is out of service on our account, and whether more may follow:
/// whoever reports wrongly, however slowly, takes no more than the caps (invariant I18). A value of one turn; taking
/// changes only this copy.
class Caps {
 public:
  explicit Caps(const CapInput& input);

  using Workloads = std::vector<std::string>;  ///< As `workload_of` says.

  /// The full cap that refuses the eviction of so many pods of these workloads from this device on this node; none:
  /// they may go.
  [[nodiscard]] std::optional<HoldReason> refuses_eviction(const DeviceKey& key, const std::string& node,
                                                           std::int64_t pods, const Workloads& workloads) const;
  /// The full cap that refuses every device of a driver or resource which does not count yet, and every eviction from
  /// one, whatever its node.
  [[nodiscard]] std::optional<HoldReason> refuses_more(const std::string& scope) const;
  [[nodiscard]] std::optional<HoldReason> refuses_more_evictions(const std::string& scope) const;
  void take_eviction(const DeviceKey& key, const std::string& node, std::int64_t pods, const Workloads& workloads);
  /// Whether the eviction of this pod counts already: it was accepted, is on its way or may have happened.
  [[nodiscard]] bool has_counted(const std::string& pod_uid) const;

  /// How many pods may be evicted in a day from devices of a driver or resource: no more ever go at once.
  [[nodiscard]] std::int64_t most_a_day(const std::string& scope) const;

  /// The full cap that refuses our taint on this device.
  [[nodiscard]] std::optional<HoldReason> refuses_taint(const DeviceKey& key, const std::string& node) const;
  void take_taint(const DeviceKey& key, const std::string& node);
  /// That all workloads whose pods hold the device have used up their own caps; none if nobody holds it.
  [[nodiscard]] std::optional<HoldReason> refuses_holders(const DeviceKey& key) const;

  /// The full cap that refuses our taint on this node, which takes all its devices of the driver or resource out of
  /// service. A node alone is never too large: `taint.node` and `nodeAtLeast` have asked for it.
  [[nodiscard]] std::optional<HoldReason> refuses_node_taint(const std::string& scope, const std::string& node) const;
  void take_node_taint(const std::string& scope, const std::string& node);

  /// Of each driver or resource of which anything counts, by name.
  [[nodiscard]] std::vector<CapUse> in_use() const;

 private:
  void add_asked();
  void add_charges();
  void add_evictions();
  [[nodiscard]] std::optional<HoldReason> refuses_device(const DeviceKey& key, const std::string& node) const;
  [[nodiscard]] std::optional<HoldReason> refuses_day(const std::string& scope, std::int64_t pods) const;
  [[nodiscard]] std::optional<HoldReason> refuses_workloads(const DeviceKey& key, const Workloads& workloads) const;
  [[nodiscard]] std::optional<HoldReason> refuses_workload(const DeviceKey& card, const std::string& workload) const;
  void take_device(const DeviceKey& key, const std::string& node);
  [[nodiscard]] CapCount::Against counted(const std::string& scope, const std::string& node,
                                          const DeviceKey& card) const;
  [[nodiscard]] std::int64_t out_on_node(const std::string& scope, const std::string& node) const;
  /// Without those on the node `but` (null: with all).
  [[nodiscard]] std::int64_t out_in_cluster(const std::string& scope, const std::string* but) const;
  [[nodiscard]] std::int64_t evicted(const std::string& scope) const;
  [[nodiscard]] bool is_whole(const std::string& scope, const std::string& node) const;
  /// All that counts: what is out of service, what counted when the turn began, what was taken since.
  [[nodiscard]] std::array<const CapCounts*, 3> all_counts() const {
    return {&input_.book.tally().counts(), at_first_.get(), &taken_};
  }
  [[nodiscard]] CapCount& to_change(const std::string& scope) { return (filling_ ? *filling_ : taken_)[scope]; }
  /// What of it counts of a driver or resource.
  template <class Look>
  void for_each_count(const std::string& scope, const Look& look) const;

  CapInput input_;
  std::shared_ptr<const CapCounts> at_first_;  // what counted when the turn began beside that: one for all copies
  CapCounts taken_;                            // and what has been taken since, of which nothing counted
  WorkloadTally lost_;
  CapCounts* filling_ = nullptr;  // `at_first_`, while it is made
};

/// How many of so many known devices a cap allows.
[[nodiscard]] std::int64_t allowed_by(const Cap& cap, std::int64_t known);

}  // namespace dhc
