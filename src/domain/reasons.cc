#include "domain/reasons.h"

namespace dhc {

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::Evicting:
      return "Evicting";
    case Reason::Evicted:
      return "Evicted";
    case Reason::WouldEvict:
      return "WouldEvict";
    case Reason::NoEvictionConfigured:
      return "NoEvictionConfigured";
    case Reason::DeviceUnhealthy:
      return "DeviceUnhealthy";
    case Reason::WaitingForWindow:
      return "WaitingForWindow";
    case Reason::WaitingForEvictAfter:
      return "WaitingForEvictAfter";
    case Reason::WaitingWhileUnknown:
      return "WaitingWhileUnknown";
    case Reason::WaitingForAllocatable:
      return "WaitingForAllocatable";
    case Reason::DeviceStillSchedulable:
      return "DeviceStillSchedulable";
    case Reason::RateLimited:
      return "RateLimited";
    case Reason::TooManyInFlight:
      return "TooManyInFlight";
    case Reason::NodeLimit:
      return "NodeLimit";
    case Reason::OwnerLimit:
      return "OwnerLimit";
    case Reason::Braked:
      return "Braked";
    case Reason::Paused:
      return "Paused";
    case Reason::WaitingForCondition:
      return "WaitingForCondition";
    case Reason::BlockedByBudget:
      return "BlockedByBudget";
    case Reason::BackingOff:
      return "BackingOff";
    case Reason::Refused:
      return "Refused";
    case Reason::MirrorPod:
      return "MirrorPod";
    case Reason::DaemonSetPod:
      return "DaemonSetPod";
    case Reason::AlreadyTerminating:
      return "AlreadyTerminating";
    case Reason::StuckTerminating:
      return "StuckTerminating";
    case Reason::FinishedPod:
      return "FinishedPod";
    case Reason::OptedOut:
      return "OptedOut";
    case Reason::NodeNotReady:
      return "NodeNotReady";
    case Reason::OwnPod:
      return "OwnPod";
    case Reason::DriverPod:
      return "DriverPod";
    case Reason::PendingWithoutDevice:
      return "PendingWithoutDevice";
    case Reason::BarePod:
      return "BarePod";
    case Reason::SharedClaim:
      return "SharedClaim";
    case Reason::ClaimStillPinned:
      return "ClaimStillPinned";
    case Reason::ReplacementOnSameDevice:
      return "ReplacementOnSameDevice";
    case Reason::DeviceAmbiguous:
      return "DeviceAmbiguous";
    case Reason::UnreadablePod:
      return "UnreadablePod";
    case Reason::SilentPlugin:
      return "SilentPlugin";
    case Reason::DeviceVanished:
      return "DeviceVanished";
    case Reason::NoReplacementDevice:
      return "NoReplacementDevice";
    case Reason::BrakeEngaged:
      return "BrakeEngaged";
    case Reason::Recovered:
      return "Recovered";
    case Reason::ConfigRejected:
      return "ConfigRejected";
    case Reason::ConditionContested:
      return "ConditionContested";
  }
  return "Unknown";
}

}  // namespace dhc
