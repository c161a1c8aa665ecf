#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace dhc {

/// Why a verdict is what it is: one vocabulary for log, Event, metric and condition. The word is the enumerator's name.
enum class Reason : std::uint8_t {
  // what is or would be done
  Evicting,              ///< An eviction request is being sent.
  Evicted,               ///< The API server accepted the eviction, the pod is terminating.
  WouldEvict,            ///< Observe mode: everything is met, an enforcing policy would evict now.
  NoEvictionConfigured,  ///< The policy has no `evict`: the incident is only shown.
  DeviceUnhealthy,       ///< The incident is open: the device has been in this state for the policy's `after`.
  Tainting,              ///< A taint is being made, or is not seen yet.
  Tainted,               ///< Our taint keeps new pods off the device or its node.
  StagedTaint,           ///< Our rule has effect None until the API server says what it would do.
  WouldTaint,            ///< Observe mode: an enforcing policy would taint now.
  Untainting,            ///< Our taint is being removed.
  Untainted,             ///< Our taint is gone; the message names the evidence.
  WouldUntaint,          ///< Observe mode: our taint stands, an enforcing policy would remove it.
  OnProbation,           ///< Untainted without evidence of health: one Unhealthy report counts as an incident.
  Crediting,             ///< The pod's Job is being given the retry back that its loss will take.
  Credited,              ///< The Job shows the retry given back for this pod.
  WouldCredit,           ///< Observe mode: an enforcing policy would give the retry back now.
  CreditNotNeeded,       ///< The loss costs the Job nothing: its podFailurePolicy ignores it, or its limit has no end.
  // waiting
  WaitingForWindow,      ///< The device has not been in this state for the policy's `after` yet.
  WaitingForEvictAfter,  ///< The incident is open, the policy's `evict.after` has not passed yet.
  WaitingWhileUnknown,   ///< The device is Unknown just now: the incident stays open, nothing is done until it is
                         ///< Unhealthy again.
  ReporterRestarted,  ///< The device's driver or plugin, or its node, has begun anew since the device was called bad:
                      ///< its Healthy is no evidence of a repair.
  WaitingForAllocatable,  ///< The node's allocatable does not show the loss yet: a replacement would be rejected by the
                          ///< kubelet.
  DeviceStillSchedulable,  ///< No NoSchedule or NoExecute taint is seen on the DRA device: the scheduler could hand it
                           ///< straight back.
  WaitingForClaim,      ///< The kubelet speaks of another allocation of the claim than is known: its watch is behind.
  WaitingForTaint,      ///< The policy taints, and the taint is not seen yet.
  RateLimited,          ///< The token bucket of `evictions.perMinute` or `taints.perMinute` is empty.
  TooManyInFlight,      ///< `evictions.maxInFlight` pods evicted by us still exist.
  NodeLimit,            ///< `evictions.perNode` is reached on the pod's node.
  OwnerLimit,           ///< `evictions.perOwner` incidents of the pod's controller are being handled.
  Braked,               ///< The brake stops new evictions of this driver or resource, on the node or in the cluster.
  CapReached,           ///< So much is out of service on our account, or was evicted today, that no more follows.
  WaitingForCharge,     ///< The eviction is not yet written down against the caps.
  Paused,               ///< `paused: true`.
  ViewTooOld,           ///< A watch on which the step rests has been silent for too long, or is known to be wrong.
  WaitingForCondition,  ///< Our condition is not seen on the pod yet: its Job's podFailurePolicy may look for it.
  WaitingForCredit,     ///< The Job does not show this pod's retry for `jobRetry.settle` yet.
  WaitingForSiblings,   ///< Another pod of the same Job is about to be evicted too: they go together.
  BlockedByBudget,      ///< A PodDisruptionBudget refuses; the message is the server's own sentence.
  BackingOff,           ///< The last attempt failed, the next one waits; the message says how it failed.
  Refused,     ///< The server refuses (400, 403, 422, or 5xx and the pod stands); the message is its own sentence.
  SignalGone,  ///< A fresh read, made in the moment before the eviction, no longer shows what it rests on.
  // never
  MirrorPod,
  DaemonSetPod,
  AlreadyTerminating,
  StuckTerminating,  ///< Evicted by us, still there two minutes after its grace period: it no longer counts as in
                     ///< flight.
  NotTerminating,    ///< The API server accepted the eviction, and the pod shows no deletionTimestamp two minutes after
                     ///< its grace period.
  FinishedPod,
  OptedOut,       ///< Annotation `device-health.io/opt-out: "true"` on the pod, its owner or its Namespace.
  OptOutUnknown,  ///< The pod's Namespace or owner is not known just now: it may have opted out.
  NodeNotReady,   ///< The pod's node is NotReady or unknown: its kubelet cannot be believed or obeyed.
  OwnPod,
  DriverPod,  ///< The pod belongs to the device's driver or plugin.
  PendingWithoutDevice,
  BarePod,      ///< No controller would replace it; `evict.barePods: true` overrides.
  SharedClaim,  ///< The claim is not the pod's own: a new pod that names it gets the same device; `evict.sharedClaims:
                ///< Together` overrides.
  ClaimStillPinned,         ///< All holders were evicted together once, and the claim is still allocated to the device.
  ReplacementOnSameDevice,  ///< The pod's controller lost a pod to the same device within the hour.
  DeviceAmbiguous,          ///< The claim has several devices and the report does not say which one is meant.
  ReportIncomplete,         ///< The kubelet names fewer devices of the claim than are allocated.
  UnreadablePod,            ///< The pod's last version could not be read.
  NotCreditable,            ///< The Job cannot get the retry back; `jobRetry.whenNotCreditable: Evict` overrides.
  WouldEndJob,              ///< No policy gives the retry back, and the loss would end the Job; the same overrides.
  // never tainted, or not untainted
  TaintedByOther,      ///< The driver's own taint or somebody else's rule keeps new pods off already.
  TaintNotNeeded,      ///< The kubelet no longer hands the device out: allocatable shows the loss.
  NodeBelowThreshold,  ///< Too few of the node's devices are bad to taint the whole node.
  TaintUnsupported,    ///< The server has no DeviceTaintRules, and the policy does not taint nodes.
  ChangedByOther,      ///< Somebody else changed or owns what we would write: it is left as it is.
  Acknowledged,        ///< A person vouches for the device: not tainted again in this incident.
  Quarantined,         ///< Too many incidents: held until a person acknowledges.
  // why a Job gets no retry back
  CreditLimitReached,  ///< `jobRetry.maxPerJob` is reached.
  IndexOutOfRetries,   ///< backoffLimitPerIndex leaves the pod's index no retry, and cannot be changed.
  FailureRuleMatches,  ///< A podFailurePolicy rule would end the Job or the index.
  JobManagedByOther,   ///< `managedBy` names another controller.
  JobOwnedByOther,     ///< The Job belongs to something that decides about its retries: a JobSet, Kueue.
  JobSuspended,
  CreditReverted,          ///< Somebody lowered the limit below our last credit's.
  CreditRecordUnreadable,  ///< The Job's annotation is not what we wrote.
  // how a Job's pods ended
  DiedOfDevice,          ///< A pod failed, and its device was bad.
  ProbablyDiedOfDevice,  ///< A pod failed, and its node lost a device that nobody has reported.
  RejectedByKubelet,     ///< A pod failed before it ran: the kubelet had no healthy device for it.
  JobDiedOfDevice,       ///< The Job failed for good, and its pod had died of its device.
  EvictedPodSucceeded,   ///< A pod that we evicted exited 0: its Job counts the work as done.
  // about devices and nodes
  SilentPlugin,  ///< Running pods hold more devices not reported Unhealthy than the node has allocatable: the plugin is
                 ///< silent.
  DeviceVanished,       ///< The node's capacity is lower than it was since its last boot.
  NoReplacementDevice,  ///< No place for a replacement is known; the eviction waits `evict.whenNoReplacement.wait`.
  BrakeEngaged,  ///< So many devices are bad that the report itself is suspect; the message says what it waits for.
  BrakeTrial,    ///< The half-open brake lets this one pod go, to learn whether another device serves it better.
  AnnotationRefused,  ///< An operator's annotation holds no time, or one ahead of the clock: it has no effect.
  BlackHoleNode,      ///< The node's kubelet rejects one pod after the other.
  Recovered,
  ConfigRejected,         ///< The configuration could not be read: the last good one stays in force.
  ConditionContested,     ///< Another writer owns our pod condition.
  StateDamaged,           ///< The state ConfigMap could not be read in full.
  StateNotRead,           ///< The state ConfigMap could not be read: we go on without it, and untaint nothing.
  StateNotSaved,          ///< The state ConfigMap could not be written: a restart would forget what is new.
  StateFull,              ///< Not all devices' histories fit into the state ConfigMap.
  StateFromNewerVersion,  ///< A newer version of this program wrote the state ConfigMap: it is left alone.
  // what nothing is decided about
  NoPolicy,            ///< A device is Unhealthy and held, and no policy matches it.
  ReporterNeverSpoke,  ///< Pods hold devices of a driver or plugin that has never said anything about one's health.
  HealthWordUnknown,   ///< A kubelet's word for a device's health is none that we know: it is treated as Unknown.
};

inline constexpr std::array kAllReasons = {Reason::Evicting,
                                           Reason::Evicted,
                                           Reason::WouldEvict,
                                           Reason::NoEvictionConfigured,
                                           Reason::DeviceUnhealthy,
                                           Reason::Tainting,
                                           Reason::Tainted,
                                           Reason::StagedTaint,
                                           Reason::WouldTaint,
                                           Reason::Untainting,
                                           Reason::Untainted,
                                           Reason::WouldUntaint,
                                           Reason::OnProbation,
                                           Reason::WaitingForWindow,
                                           Reason::WaitingForEvictAfter,
                                           Reason::WaitingWhileUnknown,
                                           Reason::ReporterRestarted,
                                           Reason::WaitingForAllocatable,
                                           Reason::DeviceStillSchedulable,
                                           Reason::WaitingForClaim,
                                           Reason::WaitingForTaint,
                                           Reason::RateLimited,
                                           Reason::TooManyInFlight,
                                           Reason::NodeLimit,
                                           Reason::OwnerLimit,
                                           Reason::Braked,
                                           Reason::CapReached,
                                           Reason::WaitingForCharge,
                                           Reason::Paused,
                                           Reason::WaitingForCondition,
                                           Reason::BlockedByBudget,
                                           Reason::BackingOff,
                                           Reason::Refused,
                                           Reason::SignalGone,
                                           Reason::MirrorPod,
                                           Reason::DaemonSetPod,
                                           Reason::AlreadyTerminating,
                                           Reason::StuckTerminating,
                                           Reason::NotTerminating,
                                           Reason::FinishedPod,
                                           Reason::OptedOut,
                                           Reason::OptOutUnknown,
                                           Reason::NodeNotReady,
                                           Reason::OwnPod,
                                           Reason::DriverPod,
                                           Reason::PendingWithoutDevice,
                                           Reason::BarePod,
                                           Reason::SharedClaim,
                                           Reason::ClaimStillPinned,
                                           Reason::ReplacementOnSameDevice,
                                           Reason::DeviceAmbiguous,
                                           Reason::ReportIncomplete,
                                           Reason::UnreadablePod,
                                           Reason::TaintedByOther,
                                           Reason::TaintNotNeeded,
                                           Reason::NodeBelowThreshold,
                                           Reason::TaintUnsupported,
                                           Reason::ChangedByOther,
                                           Reason::Acknowledged,
                                           Reason::Quarantined,
                                           Reason::NoPolicy,
                                           Reason::ReporterNeverSpoke,
                                           Reason::HealthWordUnknown,
                                           Reason::SilentPlugin,
                                           Reason::DeviceVanished,
                                           Reason::NoReplacementDevice,
                                           Reason::BrakeEngaged,
                                           Reason::BrakeTrial,
                                           Reason::AnnotationRefused,
                                           Reason::Recovered,
                                           Reason::ConfigRejected,
                                           Reason::ConditionContested,
                                           Reason::StateDamaged,
                                           Reason::StateNotRead,
                                           Reason::StateNotSaved,
                                           Reason::StateFull,
                                           Reason::StateFromNewerVersion,
                                           Reason::Crediting,
                                           Reason::Credited,
                                           Reason::WouldCredit,
                                           Reason::CreditNotNeeded,
                                           Reason::WaitingForCredit,
                                           Reason::WaitingForSiblings,
                                           Reason::NotCreditable,
                                           Reason::WouldEndJob,
                                           Reason::CreditLimitReached,
                                           Reason::IndexOutOfRetries,
                                           Reason::FailureRuleMatches,
                                           Reason::JobManagedByOther,
                                           Reason::JobOwnedByOther,
                                           Reason::JobSuspended,
                                           Reason::CreditReverted,
                                           Reason::CreditRecordUnreadable,
                                           Reason::DiedOfDevice,
                                           Reason::ProbablyDiedOfDevice,
                                           Reason::RejectedByKubelet,
                                           Reason::JobDiedOfDevice,
                                           Reason::EvictedPodSucceeded,
                                           Reason::BlackHoleNode,
                                           Reason::ViewTooOld};

/// The word, CamelCase.
[[nodiscard]] std::string_view to_string(Reason reason);

}  // namespace dhc
