#include "domain/contract/reasons.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace dhc {

namespace {

using Text = std::string_view;

/// Read at `/verdicts`, never an Event.
constexpr ReasonInfo quiet(Reason reason, Text word, Text meaning, Text remedy) {
  return {.reason = reason, .word = word, .event = EventType::None, .action = "", .meaning = meaning, .remedy = remedy};
}

constexpr ReasonInfo normal(Reason reason, Text word, Text action, Text meaning, Text remedy) {
  return {.reason = reason,
          .word = word,
          .event = EventType::Normal,
          .action = action,
          .meaning = meaning,
          .remedy = remedy};
}

constexpr ReasonInfo warning(Reason reason, Text word, Text action, Text meaning, Text remedy) {
  return {.reason = reason,
          .word = word,
          .event = EventType::Warning,
          .action = action,
          .meaning = meaning,
          .remedy = remedy};
}

/// The fact itself makes the Event, when it begins or ends.
constexpr ReasonInfo of_fact(ReasonInfo info) {
  info.from_verdict = false;
  return info;
}

/// Holds an eviction until somebody changes something.
constexpr ReasonInfo for_good(ReasonInfo info) {
  info.for_good = true;
  return info;
}

constexpr std::array<ReasonInfo, 127> kReasons = {
    // what is or would be done
    quiet(Reason::Evicting, "Evicting", "An eviction request is being sent.", "Nothing."),
    warning(Reason::Evicted, "Evicted", "Evict", "The API server accepted the eviction, the pod is terminating.",
            "Nothing."),
    warning(Reason::WouldEvict, "WouldEvict", "Observe",
            "Observe mode: all conditions are met, an enforcing policy would evict now.", "Check that you agree."),
    quiet(Reason::NoEvictionConfigured, "NoEvictionConfigured", "The policy has no evict: the incident is only shown.",
          "Add evict: to the policy if pods should be evicted."),
    of_fact(warning(Reason::DeviceUnhealthy, "DeviceUnhealthy", "Notice",
                    "The incident is open: the device has been in this state for the policy's after.",
                    "Nothing: the next steps follow.")),
    quiet(Reason::Tainting, "Tainting", "A taint is being created, or is not visible yet.", "Nothing."),
    warning(Reason::Tainted, "Tainted", "Taint", "Our taint keeps new pods off the device, or off its node.",
            "Repair the device, or acknowledge it (see docs/recovery.md)."),
    quiet(Reason::StagedTaint, "StagedTaint",
          "Our rule has effect None until the API server has reported its effect, at most 30 s.", "Nothing."),
    warning(Reason::WouldTaint, "WouldTaint", "Observe", "Observe mode: an enforcing policy would taint now.",
            "Check that you agree."),
    quiet(Reason::Untainting, "Untainting", "Our taint is being removed.", "Nothing."),
    normal(Reason::Untainted, "Untainted", "Untaint", "Our taint is gone.", "Nothing."),
    quiet(Reason::WouldUntaint, "WouldUntaint",
          "Observe mode: a taint of ours stands, and an enforcing policy would remove it.",
          "Run uninstall if you are leaving, or enforce."),
    warning(Reason::OnProbation, "OnProbation", "Untaint", "Untainted after its hold without evidence of health.",
            "Test the device."),
    quiet(Reason::HandingOver, "HandingOver",
          "The node is being handed over for the device: its condition or object is being written, or is not visible "
          "yet.",
          "Nothing."),
    warning(Reason::HandedOver, "HandedOver", "HandOver",
            "Our condition, or an object that we made, tells whoever repairs nodes that this one is bad.",
            "Repair or replace the node, or acknowledge the device (see docs/hand-over.md)."),
    quiet(Reason::HandOverHeld, "HandOverHeld", "The node is to be handed over, and something holds that.",
          "See the message: a pause, a brake, the cap, the template or the API server."),
    warning(Reason::WouldHandOver, "WouldHandOver", "Observe",
            "Observe mode: an enforcing policy would hand the node over now.", "Check that you agree."),
    normal(Reason::TakingBack, "TakingBack", "TakeBack",
           "No device is a ground for handing the node over any more: our condition or object ends.", "Nothing."),
    quiet(Reason::Crediting, "Crediting", "The pod's Job is being given back the retry that its loss will cost.",
          "Nothing."),
    normal(Reason::Credited, "Credited", "Credit",
           "The Job shows the retry: its backoffLimit is one higher (or an unspent credit has moved to this pod), and "
           "its annotation device-health.io/retry-credits says for which pod.",
           "Nothing."),
    quiet(Reason::WouldCredit, "WouldCredit", "Observe mode: an enforcing policy would give the retry back now.",
          "Check that you agree."),
    quiet(Reason::CreditNotNeeded, "CreditNotNeeded",
          "The loss costs the Job nothing that could be given back: its podFailurePolicy ignores it, its limit is "
          "unlimited, or only the index's own retry is spent.",
          "Nothing, unless the message names exit codes that would end the Job."),
    // waiting
    quiet(Reason::WaitingForWindow, "WaitingForWindow",
          "The device has not been in this state for the policy's after yet.", "Wait, or lower after."),
    warning(Reason::DriverRolling, "DriverRolling", "Hold",
            "The device's driver or plugin is being replaced on its node, or was a moment ago: the incident opens ten "
            "minutes after that at the latest, if the device is still bad. Said of a DaemonSet: devices went bad with "
            "the same words on several nodes where its pods began anew.",
            "Wait; if it is said of a DaemonSet, stop its roll-out and look at the driver."),
    quiet(Reason::WaitingForEvictAfter, "WaitingForEvictAfter",
          "The incident is open, the policy's evict.after has not passed yet.", "Wait, or lower evict.after."),
    quiet(Reason::NodeCordoned, "NodeCordoned",
          "The pod's node is cordoned, for less than the policy's evict.cordonWait: somebody may be about to drain it.",
          "Drain or uncordon the node, or wait."),
    quiet(Reason::Noticed, "Noticed", "The pod is being told of its eviction, and does not show the notice yet.",
          "Wait."),
    quiet(Reason::WaitingForCheckpoint, "WaitingForCheckpoint",
          "The pod has been told of its eviction, and has until the deadline of evict.notice to save its work.",
          "Wait, or answer for it: annotate the pod with device-health.io/notice-response: done."),
    normal(Reason::AnsweredDone, "AnsweredDone", "Notice",
           "The pod has answered its notice before the deadline: by the annotation device-health.io/notice-response, "
           "or because a container that holds the device was restarted.",
           "Nothing."),
    normal(Reason::DeadlinePassed, "DeadlinePassed", "Notice",
           "The deadline of the notice has passed, and the pod has not answered that it is done.",
           "Nothing; if work was lost, look at the program's handling of the notice (see docs/jobs.md)."),
    quiet(Reason::WaitingWhileUnknown, "WaitingWhileUnknown",
          "The device's health is unknown just now (its plugin, driver or kubelet is restarting).",
          "If it lasts, look at the plugin or driver."),
    warning(Reason::ReporterRestarted, "ReporterRestarted", "Hold",
            "The device reads Healthy, but its driver or plugin, the kubelet or the node has restarted since it was "
            "reported bad: no evidence of a repair.",
            "After a repair, acknowledge the incident."),
    quiet(Reason::WaitingForAllocatable, "WaitingForAllocatable",
          "The node's allocatable does not show the loss yet: the kubelet would reject a replacement.", "Wait."),
    for_good(warning(Reason::DeviceStillSchedulable, "DeviceStillSchedulable", "Hold",
                     "No NoSchedule or NoExecute taint is seen on the DRA device: the scheduler could give it to the "
                     "replacement again.",
                     "Taint the device (the driver's slice, or a DeviceTaintRule), or set evict.untainted: true.")),
    quiet(Reason::WaitingForClaim, "WaitingForClaim",
          "The kubelet reports a device as Unhealthy that the pod's claim, as known here, does not allocate, or the "
          "claim "
          "is known as reserved for other pods: the watch of ResourceClaims is behind.",
          "Wait."),
    quiet(Reason::WaitingForTaint, "WaitingForTaint",
          "The policy taints the device or its node first, and the taint is not seen yet.", "Wait."),
    quiet(Reason::RateLimited, "RateLimited",
          "The token bucket of evictions.perMinute (it starts empty) or taints.perMinute is empty.",
          "Wait, or raise the limit."),
    quiet(Reason::TooManyInFlight, "TooManyInFlight", "evictions.maxInFlight pods evicted by us still exist.", "Wait."),
    quiet(Reason::NodeLimit, "NodeLimit", "evictions.perNode is reached on the pod's node.",
          "Wait, or raise the limit."),
    quiet(Reason::OwnerLimit, "OwnerLimit", "evictions.perOwner incidents of the pod's controller are being handled.",
          "Wait until the replacement runs."),
    quiet(Reason::Braked, "Braked",
          "The brake stops new evictions of this driver or resource, on the node or in the cluster.",
          "See BrakeEngaged."),
    warning(Reason::CapReached, "CapReached", "Hold",
            "As many devices of this driver or resource are out of service on our account, as many pods were evicted "
            "for it within 24 h, or as many of its devices went out of service under one workload, as a cap allows "
            "(configuration.md).",
            "Repair and acknowledge devices."),
    quiet(Reason::WaitingForCharge, "WaitingForCharge",
          "The eviction is recorded in the state ConfigMap first, so that it still counts after a restart.", "Wait."),
    quiet(
        Reason::Paused, "Paused",
        "Everything, or the node, namespace, driver or resource, is paused: in ControllerLimits, or by an annotation.",
        "Set it to false, or kubectl device-health resume."),
    quiet(Reason::ViewTooOld, "ViewTooOld",
          "A watch on which the eviction, the new taint or the Job's patch depends has delivered nothing for 5 "
          "minutes, or is interrupted, or has delivered data that the API server does not have.",
          "Look at /readyz: it names the watch and when it last delivered something."),
    quiet(Reason::WaitingForCondition, "WaitingForCondition",
          "Our condition is not seen on the pod yet, and its Job's podFailurePolicy may look for it.", "Wait."),
    quiet(Reason::WaitingForCredit, "WaitingForCredit",
          "The Job does not show this pod's retry yet, or not for jobRetry.settle: the Job controller must have read "
          "it before the pod goes.",
          "Wait."),
    quiet(Reason::WaitingForSiblings, "WaitingForSiblings",
          "Another pod of the same Job is about to be evicted too: they go together, because the Job's back-off "
          "doubles with every step.",
          "Wait."),
    quiet(Reason::GangHeld, "GangHeld",
          "The pods of its gang go together, and another of them is held: the message names that pod and its reason.",
          "See that pod's reason."),
    quiet(Reason::GangHalf, "GangHalf",
          "Some pods of its gang have been evicted, and this one could not be yet: it is the first to be tried again.",
          "Wait."),
    warning(Reason::GangStuck, "GangStuck", "Hold",
            "Its gang has been half evicted for ten minutes: the message says what holds this pod.",
            "Remove what holds the pod, or delete it yourself."),
    warning(Reason::BlockedByBudget, "BlockedByBudget", "Hold", "A PodDisruptionBudget refuses.",
            "Bring the other pods of that budget back, or change the budget."),
    quiet(Reason::BackingOff, "BackingOff", "The last attempt failed, the next one waits.", "Read the message."),
    warning(Reason::Refused, "Refused", "Hold",
            "The server refuses: 400, 403 or 422, or a 5xx after which the pod still exists (two PodDisruptionBudgets "
            "that select one pod, an admission webhook that is down).",
            "Read the message: grant the missing verb, leave the pod one budget, repair the webhook."),
    warning(Reason::SignalGone, "SignalGone", "Hold",
            "Pod, claim and Job are read again right before each eviction, and that read no longer showed what the "
            "eviction rests on: the device is not reported bad any more, the pod is ending, has opted out or is "
            "another one, or its Job has lost the retry that was given back.",
            "Nothing, if it goes away within a minute."),
    // never
    for_good(warning(Reason::MirrorPod, "MirrorPod", "Hold",
                     "A static pod: the kubelet would start it again at once, on the same node.",
                     "Change the node's manifest.")),
    for_good(warning(Reason::DaemonSetPod, "DaemonSetPod", "Hold",
                     "A DaemonSet's pod: it would come back to the same node and device.", "Handle the node.")),
    quiet(Reason::AlreadyTerminating, "AlreadyTerminating", "Another client deleted the pod already.", "Nothing."),
    warning(Reason::StuckTerminating, "StuckTerminating", "Hold",
            "Evicted by us, still there two minutes after its grace period.",
            "Handle the node: usually a process hangs in the device's driver."),
    warning(Reason::NotTerminating, "NotTerminating", "Hold",
            "The API server has accepted the eviction, and two minutes after the grace period the pod still has no "
            "deletionTimestamp.",
            "Look at kubectl get pod NAME -o yaml: with a deletionTimestamp, this controller's watch of pods is "
            "behind; without one, a proxy or webhook in front of the API server answers for it."),
    quiet(Reason::FinishedPod, "FinishedPod", "The pod has succeeded or failed; it holds nothing any more.",
          "Nothing."),
    for_good(warning(Reason::OptedOut, "OptedOut", "Hold",
                     "Annotation device-health.io/opt-out: \"true\" on the pod, one of the controllers above it (its "
                     "ReplicaSet, Job or RayCluster, and their owners in turn) or its Namespace.",
                     "Remove the annotation if it is not meant.")),
    quiet(Reason::OptOutUnknown, "OptOutUnknown",
          "The pod's Namespace, or a controller above it, is not known just now, so it may have opted out.",
          "Put the rule into a ClusterRole with the label device-health.io/owners: \"true\" (install.md)."),
    quiet(Reason::NodeNotReady, "NodeNotReady",
          "The pod's node is NotReady or gone: its reports are stale and it cannot stop pods.", "Handle the node."),
    for_good(quiet(
        Reason::NodeLeaving, "NodeLeaving",
        "The pod's node is being deleted, drained or shut down, or maintenance of it is planned or under way: whoever "
        "does that moves its pods.",
        "Nothing; if it was called off, take the condition or taint that the message names off the node.")),
    for_good(quiet(Reason::OwnPod, "OwnPod", "The pod is this controller's own.", "Nothing.")),
    for_good(quiet(Reason::DriverPod, "DriverPod", "The pod belongs to the device's driver or plugin.",
                   "Look at the driver.")),
    quiet(Reason::PendingWithoutDevice, "PendingWithoutDevice", "The pod is Pending and has no device allocated.",
          "Nothing."),
    for_good(warning(Reason::BarePod, "BarePod", "Hold", "No controller would replace the pod.",
                     "Delete it yourself, or set evict.barePods: true.")),
    for_good(quiet(
        Reason::TaintTolerated, "TaintTolerated",
        "The pod's claim tolerates the taint that the policy puts on the device, and its replacement could be given "
        "the same one again; or it tolerates the driver's named taint, and accepts such a device.",
        "Nothing, or remove the toleration, or set evict.untainted: true if it tolerates our taint.")),
    for_good(
        warning(Reason::WorkloadSuspected, "WorkloadSuspected", "Suspect",
                "Devices break under this workload, or with an image that it runs, that are well under others, more "
                "of them than its share explains: its pods stay where they are, and their devices are not blamed.",
                "Look at what it runs, then annotate it, or one of its pods, with device-health.io/acknowledge.")),
    for_good(warning(Reason::SharedClaim, "SharedClaim", "Hold",
                     "The claim is not the pod's own: a new pod that names it gets the same device.",
                     "Delete claim and pods together, or set evict.sharedClaims: Together.")),
    for_good(warning(
        Reason::ClaimStillPinned, "ClaimStillPinned", "Hold",
        "All holders were evicted together once (at least one of them is gone, or may be), and the claim is still "
        "allocated to the device.",
        "Delete the claim, and let its owner make another.")),
    for_good(warning(Reason::GangTooLarge, "GangTooLarge", "Hold",
                     "The pods of its gang go together, and are more than can ever go at once: more than 256, or more "
                     "than caps.perDay allows.",
                     "Raise the cap, set evict.groups: Each, or evict the gang yourself.")),
    for_good(warning(Reason::GangNotCovered, "GangNotCovered", "Hold",
                     "The pods of its gang go together, and the policy's selectors do not fit all of them.",
                     "Widen the policy's selectors, or set evict.groups: Each.")),
    for_good(warning(Reason::GroupIndivisible, "GroupIndivisible", "Hold",
                     "Its PodGroup has disruptionMode all, which makes it one thing to be disrupted as a whole or not "
                     "at all, and only some of its pods would be evicted.",
                     "Set evict.groups: Together, with the same gang for all pods of the group, or delete them all "
                     "yourself.")),
    warning(Reason::ReplacementOnSameDevice, "ReplacementOnSameDevice", "Hold",
            "The pod's controller lost a pod to the same device within the hour, or to one of several that the report "
            "may mean.",
            "Taint the device."),
    for_good(warning(Reason::DeviceAmbiguous, "DeviceAmbiguous", "Hold",
                     "The claim has several devices and the report does not say which one is meant.",
                     "Ask the driver's authors to name the device in resourceID.")),
    quiet(Reason::ReportIncomplete, "ReportIncomplete",
          "The kubelet names fewer devices of the claim than are allocated: their driver gives several the same "
          "resourceID, and of those the kubelet reports only the first.",
          "Ask the driver's authors for a resourceID of its own for each device, or give each device a claim of its "
          "own."),
    quiet(Reason::UnreadablePod, "UnreadablePod", "The pod's last version could not be read.",
          "Look at the log: it names the field."),
    for_good(
        warning(Reason::NotCreditable, "NotCreditable", "Hold",
                "The pod's Job cannot get the retry back, and jobRetry.whenNotCreditable is Hold, or HoldIfFatal and "
                "the loss would end the Job or its cost is not known.",
                "Decide: delete the pod yourself, or set whenNotCreditable: Evict.")),
    for_good(warning(
        Reason::WouldEndJob, "WouldEndJob", "Hold",
        "The loss of the pod would end its Job, or the pod's index (no retry is left, or a podFailurePolicy rule "
        "says so), and the strictest policy that covers one of its devices gives no retry back (no jobRetry, or "
        "credit: false).",
        "Give jobRetry: {} to the policy that the message names, or jobRetry: {credit: false, whenNotCreditable: "
        "Evict} if the Job may end.")),
    // never tainted, or not untainted
    quiet(Reason::TaintedByOther, "TaintedByOther",
          "The driver's own taint, or a DeviceTaintRule that is not ours, keeps new pods off already.", "Nothing."),
    quiet(Reason::TaintNotNeeded, "TaintNotNeeded",
          "The kubelet no longer hands the device out: the node's allocatable shows the loss.", "Nothing."),
    quiet(Reason::NodeBelowThreshold, "NodeBelowThreshold",
          "Too few of the node's devices are bad to taint the whole node (nodeAtLeast).",
          "Nothing, or lower nodeAtLeast."),
    warning(Reason::TaintUnsupported, "TaintUnsupported", "Hold",
            "The server has no DeviceTaintRules, and the policy does not taint nodes.",
            "Enable the feature gate DRADeviceTaintRules, or set taint.node: NoSchedule."),
    warning(Reason::ChangedByOther, "ChangedByOther", "Hold",
            "Another client or an admission webhook changed our rule, takes away what we write on a node or a Job, or "
            "owns the field.",
            "Delete the rule if it should be created again at the next incident, or except us from the webhook."),
    normal(Reason::Acknowledged, "Acknowledged", "Hold",
           "An operator vouches for the device: it is not tainted again in this incident.", "Nothing."),
    warning(Reason::Quarantined, "Quarantined", "Hold",
            "Too many incidents: the device stays tainted until an operator acknowledges it.",
            "Replace the device, or acknowledge it."),
    // why a Job gets no retry back
    quiet(Reason::CreditLimitReached, "CreditLimitReached", "The Job has used its jobRetry.maxPerJob credits.",
          "Look at the hardware; raise the limit if you agree."),
    quiet(Reason::IndexOutOfRetries, "IndexOutOfRetries",
          "backoffLimitPerIndex leaves the pod's index no retry, and cannot be changed.",
          "Let a podFailurePolicy ignore DisruptionTarget."),
    quiet(Reason::FailureRuleMatches, "FailureRuleMatches",
          "A podFailurePolicy rule would end the Job, or the index, when the pod is evicted.",
          "Change the rules of the next Job."),
    quiet(Reason::JobManagedByOther, "JobManagedByOther", "managedBy names another controller.",
          "Nothing here: that controller decides."),
    quiet(Reason::JobOwnedByOther, "JobOwnedByOther",
          "The Job belongs to a JobSet, Kueue or something else that decides about its retries, or may: any owner but "
          "a CronJob.",
          "Set the retries there."),
    quiet(Reason::JobSuspended, "JobSuspended", "The Job is suspended.", "Nothing."),
    warning(Reason::CreditReverted, "CreditReverted", "Hold",
            "The Job's backoffLimit is lower than our last credit made it: another client re-applied a manifest.",
            "Tell the GitOps tool to ignore the field (jobs.md), and set the limit back."),
    quiet(Reason::CreditRecordUnreadable, "CreditRecordUnreadable",
          "The annotation device-health.io/retry-credits is not what we wrote: what was credited is not known.",
          "Restore or remove the annotation."),
    // how a Job's pods ended
    warning(Reason::DiedOfDevice, "DiedOfDevice", "Notice", "A pod of the Job failed, and its device was bad.",
            "Inspect the device."),
    warning(Reason::ProbablyDiedOfDevice, "ProbablyDiedOfDevice", "Notice",
            "A pod failed, and its node has fewer devices than before; nobody has reported one.", "Look at the node."),
    warning(Reason::RejectedByKubelet, "RejectedByKubelet", "Notice",
            "A pod failed before it ran: the kubelet named the device-plugin resource that it had none of "
            "(UnexpectedAdmissionError), and the node had lost one.",
            "Nothing, if it happens once; see BlackHoleNode."),
    warning(Reason::JobDiedOfDevice, "JobDiedOfDevice", "Notice",
            "The Job has failed for good by its pods, within a minute of one that died of its device and whose loss no "
            "credit covered.",
            "Start it again; jobRetry.recreate: Once does that for Jobs without an owner."),
    warning(Reason::EvictedPodSucceeded, "EvictedPodSucceeded", "Notice",
            "A pod that we evicted exited 0 on SIGTERM: its Job may count the work as done, which it may not be.",
            "Run the work again, and exit non-zero after a checkpoint on SIGTERM (jobs.md)."),
    // about devices and nodes
    warning(Reason::SilentPlugin, "SilentPlugin", "Hold",
            "Running pods hold more devices not reported Unhealthy than the node has allocatable: a device is lost and "
            "its plugin does not say which.",
            "Look at the device plugin on that node."),
    warning(Reason::DeviceVanished, "DeviceVanished", "Hold",
            "The node's capacity is lower than it was since its last boot.", "Look at the node's hardware and plugin."),
    quiet(Reason::PoolContested, "PoolContested",
          "Several nodes publish ResourceSlices of one pool, or another node than the pool's own does: only slices of "
          "the pool's own node are used.",
          "Find out who publishes them (kubectl get resourceslices -o wide) and remove them."),
    warning(Reason::NoReplacementDevice, "NoReplacementDevice", "Hold",
            "No node is known to have the devices that the pod needs free, healthy and untainted; the message counts "
            "why, and names what is not judged.",
            "Free a device or add a node."),
    warning(Reason::BrakeEngaged, "BrakeEngaged", "Hold",
            "Many devices of one driver or resource went bad at once, or many nodes reject the pods that ask for it: "
            "suspect a reporting fault.",
            "Look at the driver first."),
    warning(Reason::BrakeTrial, "BrakeTrial", "Hold",
            "The brake is half-open and permits the eviction of this one pod, to find out whether its owner runs well "
            "on another device.",
            "Wait; BrakeEngaged says how the trial ends."),
    warning(Reason::AnnotationRefused, "AnnotationRefused", "Hold",
            "An annotation has no effect, for the reason in the message: its time is no RFC 3339 time or ahead of the "
            "controller's clock, its value cannot be read, or opt-out stands as a label.",
            "A time: write the present one, date -u +%Y-%m-%dT%H:%M:%SZ. An opt-out label: write it as an annotation, "
            "in the pod template too. Anything else: correct it as the message says."),
    warning(Reason::BlackHoleNode, "BlackHoleNode", "Notice",
            "The node's kubelet has rejected blackHole.rejections pods within blackHole.within: every new pod there "
            "fails at once.",
            "Cordon the node and look at its plugin."),
    warning(Reason::ReplacementStorm, "ReplacementStorm", "Notice",
            "The workload's replacements end before they run, one after the other, because they are bound to a node "
            "that has our taint.",
            "Let its scheduler choose another node, or take the taint off the node."),
    warning(
        Reason::NodeSuspected, "NodeSuspected", "Suspect",
        "More devices break on this node than its share of them explains, under different workloads: they may share "
        "a cause. Nothing is held or moved because of that.",
        "Look at what its devices share (power, PCIe switch, cooling, host memory, the driver there) before you "
        "replace them one by one; drain it or hand it over, or annotate it with device-health.io/acknowledge."),
    warning(Reason::DriverSuspected, "DriverSuspected", "Suspect",
            "More devices break on the nodes where this revision of the DaemonSet serves them than its share of them "
            "explains, on three nodes at the least. Nothing is held or moved because of that.",
            "Stop its roll-out, compare it with the revision before, and roll it back."),
    of_fact(normal(Reason::Recovered, "Recovered", "Notice", "The device is healthy again.", "Nothing.")),
    of_fact(warning(Reason::ConfigRejected, "ConfigRejected", "Hold",
                    "The configuration could not be read: the last good one stays in force.",
                    "Run device-health-controller validate on it.")),
    warning(Reason::ConditionContested, "ConditionContested", "Hold",
            "Another writer owns our pod condition, or it does not stay: an admission webhook or another client takes "
            "it, or the notice, away. It is written again, every ten minutes in the end.",
            "Find out who: kubectl get pod NAME -o yaml --show-managed-fields. Except us from the webhook."),
    warning(Reason::StateDamaged, "StateDamaged", "Hold", "The state ConfigMap could not be read in full.",
            "Find out who edited it."),
    warning(Reason::StateNotRead, "StateNotRead", "Hold", "The state ConfigMap could not be read for 30 s.",
            "Grant list and watch on that ConfigMap."),
    warning(Reason::StateNotSaved, "StateNotSaved", "Hold",
            "The state ConfigMap could not be written: a restart would forget what is new.",
            "Read the message; usually a verb is missing."),
    warning(Reason::StateFull, "StateFull", "Hold",
            "Not all devices' histories fit into the state ConfigMap: the lightest and oldest are left out.",
            "Acknowledge and repair devices."),
    quiet(Reason::StatusNotWritten, "StatusNotWritten",
          "The status ConfigMap could not be written: kubectl device-health shows what held before.",
          "Read the message; usually a verb is missing."),
    quiet(Reason::WebhookFails, "WebhookFails", "The webhook's receiver is not told: events wait, or are lost.",
          "Read the message: it names the key of the configuration and what to correct."),
    warning(Reason::StateFromNewerVersion, "StateFromNewerVersion", "Hold",
            "A newer version of the controller wrote the state ConfigMap.",
            "Run the newer version, or delete the ConfigMap to begin without a past."),
    // what nothing is decided about
    quiet(Reason::NoPolicy, "NoPolicy",
          "A pod holds a device that is Unhealthy, or that its driver has tainted, and no policy matches it (one with "
          "mode: off does).",
          "Decide: widen that policy, write one for the device, or take it out with a policy of mode: off."),
    quiet(Reason::ReporterNeverSpoke, "ReporterNeverSpoke",
          "Pods have held devices of this driver or resource for ten minutes, and it has not reported the health of "
          "any since the controller started, and no incident of its devices is remembered: no report other than "
          "Unknown, no claim condition, no taint.",
          "Turn the driver's health service on (vendors.md), name its taints in match.deviceTaints, or take it out "
          "with a policy of mode: off."),
    quiet(Reason::HealthNotReported, "HealthNotReported",
          "Pods have held devices of this driver or resource for ten minutes, and the kubelets say nothing of them: no "
          "pod's status has allocatedResourcesStatus, or none on nodes whose kubelets are below 1.36.",
          "Update the kubelets to 1.36 or later, or enable the feature gate ResourceHealthStatus in the API server and "
          "the kubelets (install.md)."),
    quiet(Reason::HealthWordUnknown, "HealthWordUnknown",
          "The kubelet reports devices with a word that is neither Healthy, Unhealthy nor Unknown, and no policy for "
          "their pods names it: it is treated as Unknown.",
          "Read what the word means, and name it in match.health if it is a fault."),
};

// A reason without a row, or with two, does not compile.
constexpr bool is_complete() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<std::size_t>(kReasons.at(i).reason) != i) return false;
  }
  return kReasons.size() == static_cast<std::size_t>(Reason::HealthWordUnknown) + 1;
}
static_assert(is_complete());

}  // namespace

const ReasonInfo& info_of(Reason reason) { return kReasons.at(static_cast<std::size_t>(reason)); }

std::span<const ReasonInfo> all_reasons() { return kReasons; }

}  // namespace dhc
