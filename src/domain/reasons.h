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
  // waiting
  WaitingForWindow,       ///< The device has not been in this state for the policy's `after` yet.
  WaitingForEvictAfter,   ///< The incident is open, the policy's `evict.after` has not passed yet.
  WaitingWhileUnknown,    ///< The device is Unknown just now: the incident stays open, nothing is done until it is
                          ///< Unhealthy again.
  WaitingForAllocatable,  ///< The node's allocatable does not show the loss yet: a replacement would be rejected by the
                          ///< kubelet.
  DeviceStillSchedulable,  ///< No NoSchedule or NoExecute taint is seen on the DRA device: the scheduler could hand it
                           ///< straight back.
  RateLimited,             ///< The token bucket of `evictions.perMinute` is empty.
  TooManyInFlight,         ///< `evictions.maxInFlight` pods evicted by us still exist.
  NodeLimit,               ///< `evictions.perNode` is reached on the pod's node.
  OwnerLimit,              ///< `evictions.perOwner` incidents of the pod's controller are being handled.
  Braked,                  ///< The brake stops new evictions of this driver or resource, on the node or in the cluster.
  Paused,                  ///< `paused: true`.
  WaitingForCondition,     ///< Our condition is not seen on the pod yet: its Job's podFailurePolicy may look for it.
  BlockedByBudget,         ///< A PodDisruptionBudget refuses; the message is the server's own sentence.
  BackingOff,              ///< The last attempt failed, the next one waits; the message says how it failed.
  Refused,                 ///< The server refused for good (400, 403, 422); the message is the server's own sentence.
  // never
  MirrorPod,
  DaemonSetPod,
  AlreadyTerminating,
  StuckTerminating,  ///< Evicted by us, still there two minutes after its grace period: it no longer counts as in
                     ///< flight.
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
  UnreadablePod,            ///< The pod's last version could not be read.
  // about devices and nodes
  SilentPlugin,  ///< Running pods hold more devices not reported Unhealthy than the node has allocatable: the plugin is
                 ///< silent.
  DeviceVanished,       ///< The node's capacity is lower than it was since its last boot.
  NoReplacementDevice,  ///< No healthy, free, untainted device of this kind is known (approximate).
  BrakeEngaged,
  Recovered,
  ConfigRejected,      ///< The configuration could not be read: the last good one stays in force.
  ConditionContested,  ///< Another writer owns our pod condition.
};

inline constexpr std::array kAllReasons = {Reason::Evicting,
                                           Reason::Evicted,
                                           Reason::WouldEvict,
                                           Reason::NoEvictionConfigured,
                                           Reason::WaitingForWindow,
                                           Reason::WaitingForEvictAfter,
                                           Reason::WaitingWhileUnknown,
                                           Reason::WaitingForAllocatable,
                                           Reason::DeviceStillSchedulable,
                                           Reason::RateLimited,
                                           Reason::TooManyInFlight,
                                           Reason::NodeLimit,
                                           Reason::OwnerLimit,
                                           Reason::Braked,
                                           Reason::Paused,
                                           Reason::BlockedByBudget,
                                           Reason::BackingOff,
                                           Reason::Refused,
                                           Reason::MirrorPod,
                                           Reason::DaemonSetPod,
                                           Reason::AlreadyTerminating,
                                           Reason::StuckTerminating,
                                           Reason::FinishedPod,
                                           Reason::OptedOut,
                                           Reason::NodeNotReady,
                                           Reason::OwnPod,
                                           Reason::DriverPod,
                                           Reason::PendingWithoutDevice,
                                           Reason::BarePod,
                                           Reason::SharedClaim,
                                           Reason::ClaimStillPinned,
                                           Reason::ReplacementOnSameDevice,
                                           Reason::DeviceAmbiguous,
                                           Reason::UnreadablePod,
                                           Reason::SilentPlugin,
                                           Reason::DeviceVanished,
                                           Reason::NoReplacementDevice,
                                           Reason::BrakeEngaged,
                                           Reason::Recovered,
                                           Reason::ConditionContested,
                                           Reason::DeviceUnhealthy,
                                           Reason::WaitingForCondition,
                                           Reason::ConfigRejected,
                                           Reason::OptOutUnknown};

/// The word, CamelCase.
[[nodiscard]] std::string_view to_string(Reason reason);

}  // namespace dhc
