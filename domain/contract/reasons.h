#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace dhc {

/// Why a verdict is what it is: one vocabulary for log, Event, metric and condition. What each means, what to do about
/// it and whether it is told as an Event stands in the table of `reasons.cc`.
enum class Reason : std::uint8_t {
  // what is or would be done
  Evicting,
  Evicted,
  WouldEvict,
  NoEvictionConfigured,
  DeviceUnhealthy,
  Tainting,
  Tainted,
  StagedTaint,
  WouldTaint,
  Untainting,
  Untainted,
  WouldUntaint,
  OnProbation,
  HandingOver,
  HandedOver,
  HandOverHeld,
  WouldHandOver,
  TakingBack,
  Crediting,
  Credited,
  WouldCredit,
  CreditNotNeeded,
  // waiting
  WaitingForWindow,
  DriverRolling,
  WaitingForEvictAfter,
  NodeCordoned,
  Noticed,
  WaitingForCheckpoint,
  AnsweredDone,
  DeadlinePassed,
  WaitingWhileUnknown,
  ReporterRestarted,
  WaitingForAllocatable,
  DeviceStillSchedulable,
  WaitingForClaim,
  WaitingForTaint,
  RateLimited,
  TooManyInFlight,
  NodeLimit,
  OwnerLimit,
  Braked,
  CapReached,
  WaitingForCharge,
  Paused,
  ViewTooOld,
  WaitingForCondition,
  WaitingForCredit,
  WaitingForSiblings,
  GangHeld,
  GangHalf,
  GangStuck,
  BlockedByBudget,
  BackingOff,
  Refused,
  SignalGone,
  // never
  MirrorPod,
  DaemonSetPod,
  AlreadyTerminating,
  StuckTerminating,
  NotTerminating,
  FinishedPod,
  OptedOut,
  OptOutUnknown,
  NodeNotReady,
  NodeLeaving,
  OwnPod,
  DriverPod,
  PendingWithoutDevice,
  BarePod,
  TaintTolerated,
  WorkloadSuspected,
  SharedClaim,
  ClaimStillPinned,
  GangTooLarge,
  GangNotCovered,
  GroupIndivisible,
  ReplacementOnSameDevice,
  DeviceAmbiguous,
  ReportIncomplete,
  UnreadablePod,
  NotCreditable,
  WouldEndJob,
  // never tainted, or not untainted
  TaintedByOther,
  TaintNotNeeded,
  NodeBelowThreshold,
  TaintUnsupported,
  ChangedByOther,
  Acknowledged,
  Quarantined,
  // why a Job gets no retry back
  CreditLimitReached,
  IndexOutOfRetries,
  FailureRuleMatches,
  JobManagedByOther,
  JobOwnedByOther,
  JobSuspended,
  CreditReverted,
  CreditRecordUnreadable,
  // how a Job's pods ended
  DiedOfDevice,
  ProbablyDiedOfDevice,
  RejectedByKubelet,
  JobDiedOfDevice,
  EvictedPodSucceeded,
  // about devices and nodes
  SilentPlugin,
  DeviceVanished,
  PoolContested,
  NoReplacementDevice,
  BrakeEngaged,
  BrakeTrial,
  AnnotationRefused,
  BlackHoleNode,
  ReplacementStorm,
  NodeSuspected,
  DriverSuspected,
  Recovered,
  ConfigRejected,
  ConditionContested,
  StateDamaged,
  StateNotRead,
  StateNotSaved,
  StateFull,
  StatusNotWritten,
  WebhookFails,
  StateFromNewerVersion,
  // what nothing is decided about
  NoPolicy,
  ReporterNeverSpoke,
  HealthNotReported,
  HealthWordUnknown,
};

/// Whether a reason is told as an Event, and of which type. Waits and limits are not: they come and go, and are read at
/// `/verdicts`.
enum class EventType : std::uint8_t { None, Normal, Warning };

/// All that is said of one reason, whoever says it.
struct ReasonInfo {
  Reason reason;
  std::string_view word;  ///< The enumerator's name.
  EventType event;
  std::string_view action;   ///< The Event's `action`; empty without one.
  std::string_view meaning;  ///< One sentence; `docs/verdicts.md` begins with it and may say more.
  std::string_view remedy;   ///< What an operator does about it: one sentence, likewise.
  bool from_verdict = true;  ///< A verdict makes the Event; false: the fact itself does, when it begins or ends.
  bool for_good = false;     ///< It holds an eviction until somebody changes something: time alone ends it never.
};

[[nodiscard]] const ReasonInfo& info_of(Reason reason);

/// The word, CamelCase.
[[nodiscard]] inline std::string_view to_string(Reason reason) { return info_of(reason).word; }

/// Every reason once, in the order of the enumerators.
[[nodiscard]] std::span<const ReasonInfo> all_reasons();

}  // namespace dhc
