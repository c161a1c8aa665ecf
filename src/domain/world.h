#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "domain/health_tracker.h"
#include "domain/inventory.h"
#include "domain/node_books.h"
#include "domain/resolver.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// One pod that can hold devices, and those it holds.
struct PodRecord {
  k8s::Pod pod;
  std::vector<Holding> holdings;  ///< Kept while the pod lives: a template claim is gone within a second of the pod's
                                  ///< end (seen on 1.37.1).
  bool readable = true;           ///< False: its last version could not be read, nothing may be decided on it.
};

/// The last known state of the cluster, changed only by deliveries; `refresh` draws the conclusions. Copies nothing
/// out.
class World {
 public:
  void apply(k8s::Delivery delivery, const Now& now);

  /// Resolves what has changed since the last call and feeds the tracker: once a turn, after the deliveries, so that
  /// their order within the turn cannot matter.
  void refresh(const Now& now);

  /// True once every kind but ConfigMap has had its first Snapshot.
  [[nodiscard]] bool synced() const;

  /// When `refresh` would conclude something new by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Now& now) const;

  [[nodiscard]] const PodRecord* pod(std::string_view uid) const;
  [[nodiscard]] const std::unordered_map<std::string, PodRecord>& pods() const { return pods_; }
  /// UIDs of the pods with devices on a node, sorted.
  [[nodiscard]] const std::set<std::string>& pods_on(const std::string& node) const;
  /// UIDs of pods with a deletionTimestamp, sorted.
  [[nodiscard]] const std::set<std::string>& terminating() const { return terminating_; }
  /// UIDs of pods with our condition, whatever its status, sorted.
  [[nodiscard]] const std::set<std::string>& with_condition() const { return with_condition_; }
  [[nodiscard]] const k8s::ResourceClaim* claim(std::string_view key) const;
  [[nodiscard]] std::size_t claim_count() const { return claims_.size(); }
  /// UIDs of the pods whose spec names the claim, sorted.
  [[nodiscard]] const std::set<std::string>& users_of(const std::string& claim) const;
  /// Claims on which a driver has written device conditions (KEP-4817), sorted by key.
  [[nodiscard]] const std::set<std::string>& claims_with_conditions() const { return claims_with_conditions_; }
  /// True if some claim holds the device now.
  [[nodiscard]] bool is_allocated(const DeviceKey& key) const { return allocated_.contains(key); }
  /// True if the claim with this UID exists and is allocated.
  [[nodiscard]] bool is_claim_allocated(const std::string& uid) const { return allocated_claims_.contains(uid); }
  [[nodiscard]] const k8s::Node* node(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, k8s::Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::map<std::string, NodeBook>& books() const { return books_; }
  /// Nodes on which a plugin is silent or a device has vanished, however short.
  [[nodiscard]] const std::set<std::string>& suspicious_nodes() const { return suspicious_; }
  [[nodiscard]] const k8s::Meta* namespace_of(const std::string& name) const;
  /// A Job, ReplicaSet or StatefulSet.
  [[nodiscard]] const k8s::Meta* owner(const std::string& uid) const;
  [[nodiscard]] const HealthTracker& tracker() const { return tracker_; }
  [[nodiscard]] const Inventory& inventory() const { return inventory_; }

 private:
  struct ClaimRecord {
    k8s::ResourceClaim claim;
    bool gone = false;  ///< Deleted, kept for the pods that still name it.
  };

  void apply_one(k8s::Snapshot&& snapshot, const Now& now);
  void apply_one(k8s::Upsert&& upsert, const Now& now);
  void apply_one(k8s::Remove&& remove, const Now& now);
  void apply_one(k8s::Unreadable&& unreadable, const Now& now);
  void put(k8s::Pod&& pod, const Now& now);
  void put(k8s::ResourceClaim&& claim);
  void put(k8s::Node&& node);
  void drop_pod(const std::string& uid, const Now& now);
  void drop_claim(const std::string& key);
  void drop_node(const std::string& name);
  void index_claim(const k8s::ResourceClaim& claim, bool add);
  void refresh_pod(const std::string& uid, const Now& now);
  void refresh_node(const std::string& name, const Now& now);
  void refresh_device(const DeviceKey& key, const Now& now);
  void release_claim_if_unused(const std::string& key);

  std::unordered_map<std::string, PodRecord> pods_;       // by UID
  std::map<std::string, std::set<std::string>> pods_on_;  // by node
  std::set<std::string> terminating_;
  std::set<std::string> with_condition_;
  std::map<std::string, std::set<std::string>> claim_users_;  // by claim key
  std::unordered_map<std::string, ClaimRecord> claims_;       // by claim key
  std::set<std::string> claims_with_conditions_;
  std::unordered_map<DeviceKey, int, DeviceKeyHash> allocated_;
  std::unordered_set<std::string> allocated_claims_;  // UIDs
  std::map<std::string, k8s::Node> nodes_;
  std::map<std::string, NodeBook> books_;
  std::map<std::string, k8s::Meta> namespaces_;
  std::unordered_map<std::string, k8s::Owner> owners_;
  Inventory inventory_;
  bool pools_may_be_stale_ = false;  // a node or slice has gone since the last refresh
  HealthTracker tracker_;
  std::set<std::string> nobody_;  // what an index without an entry answers
  std::set<k8s::Kind> seen_;
  std::set<std::string> dirty_pods_;
  std::set<std::string> dirty_nodes_;
  std::set<DeviceKey> dirty_devices_;
  std::set<std::string> suspicious_;
  std::set<std::string> settling_;  // nodes whose plugins' Healthy is not believed yet
};

/// Our condition on the pod, or null.
[[nodiscard]] const k8s::Condition* our_condition(const k8s::Pod& pod);

/// True while a kubelet runs the pod: its reports are evidence, and it can be evicted.
[[nodiscard]] bool is_live(const k8s::Pod& pod);

}  // namespace dhc
