#pragma once
#include <array>
#include <string_view>

#include "k8s-client/model/kept_fields.h"

namespace dhc {

/// Pods that need each other: the name of their gang, as an annotation or a label.
inline constexpr std::string_view kGangMark = "device-health.io/gang";
/// **Source:** leaderworkerset.x-k8s.io/v1: the label that all pods of one group share, and the set's name.
inline constexpr std::string_view kLwsGroupLabel = "leaderworkerset.sigs.k8s.io/group-key";
inline constexpr std::string_view kLwsNameLabel = "leaderworkerset.sigs.k8s.io/name";
/// **Source:** jobset.x-k8s.io/v1alpha2: on every pod of a JobSet; the UID since 0.8.
inline constexpr std::string_view kJobSetUidLabel = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kJobSetNameLabel = "jobset.sigs.k8s.io/jobset-name";
/// By which a pod without a device may be in a gang with one that has a device.
inline constexpr std::array<std::string_view, 4> kGangMarks = {kGangMark, kLwsGroupLabel, kJobSetUidLabel,
                                                               kJobSetNameLabel};

/// The reasons of our conditions on nodes, by which we know them: their types are the configuration's, and may change.
inline constexpr std::string_view kHandedOverReason = "DeviceHealthHandedOver";
inline constexpr std::string_view kTakenBackReason = "DeviceHealthRecovered";
inline constexpr std::array<std::string_view, 2> kNodeReasons = {kHandedOverReason, kTakenBackReason};

/// Whatever bears our domain is kept of what others may fill.
inline constexpr k8s::KeptFields kKeptFields = {
    .prefix = "device-health.io/", .marks = kGangMarks, .node_reasons = kNodeReasons};

/// The words that we write into the cluster; each is ours alone.
inline constexpr std::string_view kConditionType = "device-health.io/DeviceUnhealthy";
inline constexpr std::string_view kOptOutAnnotation = "device-health.io/opt-out";
/// What we tell a pod's program, and what is answered on its behalf.
inline constexpr std::string_view kNoticeAnnotation = "device-health.io/notice";
inline constexpr std::string_view kNoticeResponseAnnotation = "device-health.io/notice-response";
inline constexpr std::string_view kBrakeReleaseAnnotation = "device-health.io/brake-release";
inline constexpr std::string_view kCapReleaseAnnotation = "device-health.io/cap-release";
/// On the configuration's ConfigMap: until when nothing is evicted, credited or newly tainted, and why.
inline constexpr std::string_view kPauseUntilAnnotation = "device-health.io/pause-until";
inline constexpr std::string_view kPauseReasonAnnotation = "device-health.io/pause-reason";
/// Before the name of a pause of a part, on the same ConfigMap.
inline constexpr std::string_view kScopedPausePrefix = "device-health.io/pause.";

/// The label of ClusterRoles that let us read owners of more kinds: they are aggregated into one role of ours.
inline constexpr std::string_view kOwnersRoleLabel = "device-health.io/owners";

/// Our taint, on devices and nodes.
inline constexpr std::string_view kTaintKey = "device-health.io/unhealthy";
/// The only value that we give it.
inline constexpr std::string_view kRuleValue = "Unhealthy";
/// What an operator writes on our DeviceTaintRule (any value) or on a node (an RFC 3339 time: incidents that began up
/// to then).
inline constexpr std::string_view kAcknowledgeAnnotation = "device-health.io/acknowledge";

/// The name under which our fields are owned. Never changes: another name would leave the old fields behind.
inline constexpr std::string_view kFieldManager = "device-health-controller";

/// The name under which our conditions of nodes are owned. Never changes, likewise.
inline constexpr std::string_view kHandOverManager = "device-health-hand-over";

/// On an object of another's kind by which a node is handed over: the incident of which it was made.
inline constexpr std::string_view kIncidentAnnotation = "device-health.io/incident";

/// What marks an object as made by us.
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "device-health-controller";
inline constexpr std::string_view kRulePrefix = "dhc-";
/// What our DeviceTaintRule remembers: the effect as we applied it (any other was set by an operator), the policy,
/// since when the device has been bad, how many incidents it has had, and which physical device it was.
inline constexpr std::string_view kEffectAnnotation = "device-health.io/effect";
inline constexpr std::string_view kPolicyAnnotation = "device-health.io/policy";
inline constexpr std::string_view kSinceAnnotation = "device-health.io/since";
inline constexpr std::string_view kIncidentsAnnotation = "device-health.io/incidents";
inline constexpr std::string_view kIdentityAnnotation = "device-health.io/identity";
inline constexpr std::string_view kIdentityAttributeAnnotation = "device-health.io/identity-attribute";
/// And what it tells people, who list rules by these labels; the driver's words when it was applied. Where a name is no
/// label value it is shortened there, and stands in full as an annotation of the same key.
inline constexpr std::string_view kNodeLabel = "device-health.io/node";
inline constexpr std::string_view kDriverLabel = "device-health.io/driver";
inline constexpr std::string_view kDeviceLabel = "device-health.io/device";
inline constexpr std::string_view kPolicyLabel = kPolicyAnnotation;
inline constexpr std::string_view kSaidAnnotation = "device-health.io/said";
/// On a rule for a device that is not bad itself: the name of the one in its pool that is, on the same physical card.
inline constexpr std::string_view kSameCardAnnotation = "device-health.io/same-card-as";

/// What we write on Jobs: every retry given back, and what an operator should know of pods lost. The label names, on a
/// Job that we made, the one that died.
inline constexpr std::string_view kRetryCreditsAnnotation = "device-health.io/retry-credits";
inline constexpr std::string_view kLossesAnnotation = "device-health.io/losses";
inline constexpr std::string_view kRecreatedFromLabel = "device-health.io/recreated-from";

/// The ConfigMap in which 0.1.0 kept the devices' histories: it is read, never written. Ours is `kIncidentsName`.
inline constexpr std::string_view kStateName = "device-health-state";
inline constexpr std::string_view kStateEntry = "devices.json";

/// The ConfigMap in our own namespace that says what holds now, for `kubectl device-health`; and on it, which process
/// wrote it and when.
inline constexpr std::string_view kStatusName = "device-health-status";
inline constexpr std::string_view kStatusEntry = "status.json";
inline constexpr std::string_view kWrittenByAnnotation = "device-health.io/written-by";
inline constexpr std::string_view kWrittenAtAnnotation = "device-health.io/written-at";

/// The Lease in our own namespace that says who leads.
inline constexpr std::string_view kLeaseName = "device-health-controller";

/// Kubernetes' own words that decisions depend on.
inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";
/// **Source:** seen on 1.37.1: the reason that the Eviction API gives its DisruptionTarget condition.
inline constexpr std::string_view kEvictedByApi = "EvictionByEvictionAPI";
/// **Source:** KEP-5055, seen on 1.37.1: the same of the controller that deletes pods for a device's NoExecute taint.
inline constexpr std::string_view kDeletedForTaint = "DeletionByDeviceTaintManager";
/// **Source:** seen on 1.37.1: `status.reason` of a pod whose devices the kubelet could not allocate.
inline constexpr std::string_view kAdmissionError = "UnexpectedAdmissionError";
inline constexpr std::string_view kCompletionIndexAnnotation = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailuresAnnotation = "batch.kubernetes.io/job-index-failure-count";

}  // namespace dhc
