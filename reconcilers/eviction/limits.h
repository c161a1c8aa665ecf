#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/wake.h"
#include "domain/limits/token_bucket.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// How long beyond its grace period an evicted pod counts as in flight.
inline constexpr Millis kSlotPatience = std::chrono::minutes(2);

/// How many attempts to evict are made in a minute: a refusal evicts nobody, and costs the server no less.
[[nodiscard]] constexpr std::int64_t attempts_per_minute(const Limits& limits) {
  return 6 * limits.evictions_per_minute;
}

/// Until when an evicted pod holds its slot; hung pods on dead hardware must not stop everything, nor may a pod whose
/// owner has given it a month to end.
[[nodiscard]] MonoTime slot_until(const EvictionAttempt& attempt, const k8s::Pod& pod, const Limits& limits);

/// When the whole of the pod's grace period has passed, and the patience with it.
[[nodiscard]] MonoTime gone_by(const EvictionAttempt& attempt, const k8s::Pod& pod);

/// Whether the API server accepted the eviction, and the pod has shown no deletionTimestamp in all its time.
[[nodiscard]] bool accepted_in_vain(const EvictionAttempt& attempt, const k8s::Pod& pod, const PlanInput& input);

/// When slots that become free are kept for a unit of several pods, which fits only when others have gone: else pods
/// that go one by one would hold it for ever. In turns, because whose pods are in flight decides how long that lasts.
inline constexpr Millis kSlotsKeptAfter = std::chrono::minutes(10);
inline constexpr Millis kSlotsKeptFor = std::chrono::minutes(10);
inline constexpr Millis kSlotsKeptEvery = std::chrono::minutes(30);

struct KeptSlots {
  bool now = false;
  MonoTime changes_at;
};
[[nodiscard]] KeptSlots kept_slots(const AffectedPod& first, const Now& now);

/// Pods to be evicted together: one pod, all holders of a shared claim, or a gang.
struct Unit {
  std::vector<const AffectedPod*> affected_pods;  ///< One for each pod.
  std::string gang = {};                          ///< The key of the gang that it is; empty: none.
};

/// What is in flight now, and whether one more unit fits. Taking changes only this copy; the request tracker learns
/// when the actions are sent.
class Budget {
 public:
  explicit Budget(const PlanInput& input);

  /// The limit that refuses the unit; none if it fits.
  [[nodiscard]] std::optional<HoldReason> refuses(const Unit& unit) const;

  /// The limit that refuses whomever it is: of what is in flight in all, or of the rate.
  [[nodiscard]] std::optional<HoldReason> refuses_all() const;

  void take(const Unit& unit);

  /// Keeps for a unit of several pods what it is refused for want of: pods that go one by one would leave too little
  /// for it again and again. A full bucket of tokens, which takes a minute, is always enough; slots are kept in turns.
  void reserve(const Unit& unit, Reason refused);
  /// Keeps all for one that fits and is held for a moment by what is asked behind the limits.
  void keep_for(const Unit& unit);

  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  /// When the first slot becomes free by time alone.
  [[nodiscard]] std::optional<MonoTime> next_free_at() const { return next_free_.at(); }

 private:
  void count(const k8s::Pod& pod, const std::string& owner, const std::string& device, MonoTime at);
  [[nodiscard]] std::optional<HoldReason> refuses_by_flight(std::int64_t size) const;
  /// Of its nodes or owners.
  [[nodiscard]] std::optional<HoldReason> refuses_by_share(const Unit& unit) const;
  [[nodiscard]] std::optional<HoldReason> refuses_by_rate(std::int64_t size) const;
  [[nodiscard]] std::optional<MonoTime> enough_at(const TokenBucket& bucket, std::int64_t size) const;
  void promise(std::int64_t count);
  [[nodiscard]] bool is_counted(const AffectedPod& affected) const;

  const PlanInput& input_;
  std::int64_t in_flight_ = 0;
  std::int64_t reserved_ = 0;  // slots that are kept
  // What is left of them, and what this plan has promised, which is gone when it is sent.
  std::int64_t tokens_ = 0;
  std::int64_t attempts_ = 0;
  std::int64_t promised_ = 0;
  std::map<std::string, std::int64_t> on_node_;
  std::map<std::string, std::map<std::string, MonoTime>> incidents_of_;  // owner UID -> device -> last eviction
  Wake next_free_;
};

}  // namespace dhc::eviction
