#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/contract/device_key.h"
#include "domain/policy/policy.h"
#include "reconcilers/shared/action_facts.h"
#include "reconcilers/shared/notice_answer.h"

namespace dhc::eviction {

/// What an eviction rests on, and what a read in the moment before it must still show. The plan decides it, `judge`
/// holds it against the bytes that were read.
struct Signal {
  /// What the report of the device may say; both empty: the driver's own words decide, or nothing is asked.
  std::vector<k8s::Health> health = {};
  std::vector<std::string> health_words = {};
  std::optional<MessagePattern> message = {};  ///< Must fit the driver's words with an Unhealthy report.
  /// The pod whose status reports the device, if it is another one that holds the same; empty: the pod itself.
  std::string witness_ns = {};
  std::string witness_name = {};
  std::string witness_uid = {};
  std::string witness_version = {};
  /// The claim through which the pod holds the device, in the pod's namespace; empty: a device-plugin device.
  std::string claim_name = {};
  std::string claim_uid = {};
  std::string claim_version = {};
  std::vector<ClaimConditionMatch> claim_conditions = {};  ///< One of them must stand; empty: none is asked.
  /// The slice that publishes the device, where a taint in it is the signal; empty: none is asked.
  std::string slice_name = {};
  std::string slice_uid = {};
  std::string slice_version = {};
  std::string slice_node = {};                       ///< The node of the device's pool; empty: it has none.
  std::vector<DeviceTaintMatch> device_taints = {};  ///< One of them must stand on the device there.
  friend bool operator==(const Signal&, const Signal&) = default;
};

/// The Job that an eviction takes a pod from, as the plan saw it, and what of it a read in the moment before must still
/// show: the watch may show a credit that the server no longer has, as after etcd was restored.
struct RetryTerms {
  std::string job_name = {};
  std::string job_uid = {};
  std::string job_version = {};
  bool has_credit = false;                 ///< The pod's credit must stand in the Job's record, and its limit with it.
  std::optional<std::int64_t> limit = {};  ///< What `backoffLimit` must be at least, where no record says it.
  /// Where nothing pays for the loss: losses of other pods that the Job may count yet, on top of those that it has.
  std::optional<std::int64_t> uncounted = {};
  friend bool operator==(const RetryTerms&, const RetryTerms&) = default;
};

/// Evict one pod through the Eviction API; the UID is a precondition (invariant I1).
struct EvictPod {
  std::string ns;
  std::string name;
  std::string uid;
  std::string seen_version = {};  ///< The pod's resourceVersion as the plan saw it.
  std::optional<std::int64_t> grace_period_seconds;
  std::string shared_claim_uid = {};  ///< Set when all holders of a shared claim are evicted together.
  DeviceKey key;                      ///< The bad device.
  std::string device_node = {};       ///< The node of whoever holds it: the pod's own, unless it goes with another.
  std::string workload = {};          ///< That one's, as `workload_of` says.
  // for logs and metrics
  std::string device;
  std::string policy;
  Signal signal = {};
  std::optional<RetryTerms> retry = {};    ///< None: nothing is asked of a Job.
  std::optional<GivenNotice> notice = {};  ///< What the pod was told before; its answer must still let it go,
  WallTime decided_at = {};                ///< at the time of the plan.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const EvictPod&, const EvictPod&) = default;
};

}  // namespace dhc::eviction
