#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::job_retry {

/// What is made of a Job's pod that has ended.
struct Finding {
  const PodEnding* ending = nullptr;
  const JobRecord* record = nullptr;
  Reason what = Reason::DiedOfDevice;  ///< DiedOfDevice, ProbablyDiedOfDevice, RejectedByKubelet, EvictedPodSucceeded.
  std::string device;
  DeviceKey key;                         ///< Of the device; without a device's name for RejectedByKubelet.
  const DevicePolicy* policy = nullptr;  ///< The one that covered the device as it was; null only for
                                         ///< EvictedPodSucceeded.
  Mode mode = Mode::Observe;
  std::string why;  ///< The evidence, for people.
};

/// How long after a pod's end its device may still betray itself.
inline constexpr Millis kLateEvidence = std::chrono::minutes(10);

/// Every ending of a known Job's pod that hardware, or our eviction, has to do with; in the order of pod UIDs.
[[nodiscard]] std::vector<Finding> find_endings(const PlanInput& input);

/// What is said of nodes whose kubelets rejected so many pods within the policy's time that new pods only go there to
/// die.
[[nodiscard]] Planned<Verdict> tell_rejecting_nodes(const PlanInput& input);

}  // namespace dhc::job_retry
