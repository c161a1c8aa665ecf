#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "domain/cluster/focus.h"
#include "domain/cluster/world.h"
#include "domain/history/device_record.h"
#include "domain/limits/out_tally.h"
#include "domain/limits/request_tracker.h"
#include "domain/limits/workload_book.h"

namespace dhc {

/// That a pod may be evicted, written down before its eviction is sent: whoever leads next counts it although no answer
/// was ever seen.
struct EvictionCharge {
  std::string pod_uid;
  DeviceKey key;
  std::string node;
  WallTime at;
  std::string loser{};  ///< Whose loss it would be, as `loss_owner` says; empty: written by an older version.
  std::vector<DeviceKey> may_be{};  ///< The devices that an ambiguous `key` may be.
  std::string workload{};           ///< As `workload_of` says; empty: written by an older version.
  std::string gang{};               ///< The key of the gang with which the pod goes; empty: it goes alone.
  std::int64_t gang_size = 0;       ///< How many go together.
  /// Since when others of them have gone, and this pod is still to follow; none: nobody has.
  std::optional<WallTime> half_since{};
  /// It was accepted and has counted, but the pod stays: asked for again it counts no more.
  bool counted = false;
  // of this process alone
  std::uint64_t revision = 0;  ///< Of the incident store, to be saved before the eviction is sent.
  bool recalled = false;       ///< Read from the state: a process before this one may have sent the eviction.
  friend bool operator==(const EvictionCharge&, const EvictionCharge&) = default;
};

/// Evictions for one driver or resource within ten minutes.
struct EvictionCount {
  WallTime first;
  WallTime last;
  std::int64_t count = 0;
  friend bool operator==(const EvictionCount&, const EvictionCount&) = default;
};

/// What of our own doing counts against the caps. Part of the incident store and written down with it.
class CapBook {
 public:
  /// How long an eviction counts against `caps.perDay`.
  static constexpr Millis kDay = std::chrono::hours(24);
  /// How many pods may be charged and not yet evicted.
  static constexpr std::size_t kMostCharges = 1000;

  /// By pod UID.
  [[nodiscard]] const std::map<std::string, EvictionCharge>& charges() const { return charges_; }
  /// A charge that was not used for so long is dropped: it would only let an eviction of another day through.
  static constexpr Millis kUnusedCharge = std::chrono::hours(1);
  [[nodiscard]] const OutOfServiceBook& out() const { return out_; }
  /// How they count, as of the last `follow`.
  [[nodiscard]] const OutTally& tally() const { return tally_; }
  /// By driver or resource; oldest first.
  [[nodiscard]] const std::map<std::string, std::vector<EvictionCount>>& evictions() const { return evictions_; }

  /// What counts against `caps.ownerDevicesPerDay`.
  [[nodiscard]] const WorkloadBook& workloads() const { return workloads_; }

  void charge(EvictionCharge charge);

  /// The charge that gives way first when another needs its room, or null: the longest unused of those that may, and
  /// whose pods are not going now.
  [[nodiscard]] const EvictionCharge* first_to_give_way(const std::set<std::string>& going,
                                                        const RequestTracker& requests, const Now& now) const;
  void drop(const std::string& pod_uid) { charges_.erase(pod_uid); }

  /// How many charges no new one may take the place of: their evictions are on their way, may have happened, or are to
  /// be sent for the first time, within a minute.
  [[nodiscard]] std::size_t places_taken(const RequestTracker& requests, const Now& now) const;

  /// What became of the charged evictions, by the request tracker and the World: those that happened, or may have,
  /// count from now on; those that surely did not are dropped with their pods. True if something is to be written.
  [[nodiscard]] bool settle(const World& world, const RequestTracker& requests, const Now& now);

  /// Which devices are still out of service: an incident that has ended, or that an operator has acknowledged, counts
  /// no more. Looks at those in focus (null: at all). True if something is to be written.
  [[nodiscard]] bool follow(const World& world, const DeviceRecords& records, const Policy& policy, const Now& now,
                            const Focus* focus);

  /// An operator has released the cluster's caps: evictions, and what workloads have lost, before then count no more.
  /// True if there were any.
  [[nodiscard]] bool release(WallTime until);

  // as they are read from the state
  void recall(EvictionCharge charge);
  void recall(const DeviceKey& key, OutOfService out);
  void recall(const std::string& scope, EvictionCount count);
  void recall(const std::string& workload, const DeviceKey& card, WallTime at) { workloads_.note(workload, card, at); }

  /// Of what is written down.
  friend bool operator==(const CapBook& a, const CapBook& b) {
    return std::tie(a.charges_, a.out_, a.evictions_, a.workloads_) ==
           std::tie(b.charges_, b.out_, b.evictions_, b.workloads_);
  }

 private:
  bool take_out(const DeviceKey& key, bool by_rule, const World& world, const Now& now);
  bool look_at(const DeviceKey& key, const World& world, const DeviceRecords& records, const Now& now);
  void count_eviction(const EvictionCharge& charge, const World& world, const Now& now);
  [[nodiscard]] bool drop_oldest(const RequestTracker& requests, const Now& now);

  std::map<std::string, EvictionCharge> charges_;
  OutOfServiceBook out_;
  std::set<DeviceKey> asked_again_;  // of out_, those that are looked at whatever the focus: new, or without a record
  OutTally tally_;
  std::map<std::string, std::vector<EvictionCount>> evictions_;
  WorkloadBook workloads_;
};

/// Whether a new charge may take the place of this one, which is made again when its turn comes: it was refused before,
/// or has been held by something else for a minute. One that has counted stays for as long as its pod.
[[nodiscard]] bool may_give_way(const EvictionCharge& charge, const RequestTracker& requests, const Now& now);

/// The pod of an earlier charge is to go for another of its devices: what is known of the earlier one, and that the pod
/// may have gone for that one's device, stays.
void follow_charge(EvictionCharge& charge, const EvictionCharge& earlier);

/// The newest of neighbouring counts takes in the older one, so that no more than `most` remain: nothing is forgotten
/// early.
void merge_counts(std::vector<EvictionCount>& counts, std::size_t most);

}  // namespace dhc
