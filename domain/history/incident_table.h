#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace dhc {

/// Where the incidents of one device stand.
enum class IncidentPhase : std::uint8_t {
  None,          ///< No incident is known, or the last one is long over.
  Open,          ///< It goes on, and ends by evidence, by the hold or by an operator's word.
  Quarantined,   ///< It goes on, of a lemon: only an operator's word ends it.
  Acknowledged,  ///< It goes on, and an operator vouches for the device: it is not tainted for it.
  Probation,     ///< It is over without evidence: for a day one bad report begins the next one.
  Ended,         ///< It is over.
};
inline constexpr std::array<IncidentPhase, 6> kIncidentPhases = {
    IncidentPhase::None,         IncidentPhase::Open,      IncidentPhase::Quarantined,
    IncidentPhase::Acknowledged, IncidentPhase::Probation, IncidentPhase::Ended};

/// What happens to incidents.
enum class IncidentEvent : std::uint8_t {
  Began,          ///< The policy's time has passed: an incident begins, also where an older one goes on.
  BeganAsLemon,   ///< Likewise, of a device whose penalty is above the policy's limit.
  Vouched,        ///< An operator has acknowledged it.
  Recovered,      ///< There is evidence of recovery, or an acknowledged device has been quiet for long enough.
  HeldOut,        ///< No evidence, but the hold is over, or the node has rebooted.
  ProbationOver,  ///< The day has passed.
  Replaced,       ///< Another physical device, or another node, is in its place.
  Departed,       ///< The physical device has left its place: what is remembered of it waits for it elsewhere.
  PastDeleted,    ///< An operator has deleted the stored state.
  Excused,        ///< What ran on the device is to blame for it.
};
inline constexpr std::array<IncidentEvent, 10> kIncidentEvents = {
    IncidentEvent::Began,       IncidentEvent::BeganAsLemon,  IncidentEvent::Vouched,  IncidentEvent::Recovered,
    IncidentEvent::HeldOut,     IncidentEvent::ProbationOver, IncidentEvent::Replaced, IncidentEvent::Departed,
    IncidentEvent::PastDeleted, IncidentEvent::Excused};

/// What is done beside.
enum class IncidentThen : std::uint8_t {
  Nothing,  ///< The event says nothing in this phase: all stays as it is.
  Begin,    ///< Another incident is counted; nothing of an older one remains but its history.
  Pay,      ///< The penalty is cleared, and with it the quarantine.
  Lift,     ///< The quarantine is lifted; the incident goes on.
  End,      ///< When and why it ended is told for a while; our taint is to go.
  Clear,    ///< Nothing remains of the incident.
  Release,  ///< Probation is over; when and why the incident ended stays.
};

struct IncidentStep {
  IncidentPhase to;
  IncidentThen then;
  friend bool operator==(const IncidentStep&, const IncidentStep&) = default;
};

/// The whole life of incidents: every phase, every event.
[[nodiscard]] IncidentStep step_of(IncidentPhase phase, IncidentEvent event);

/// Whether an incident goes on.
[[nodiscard]] bool is_open(IncidentPhase phase);

/// Names for documents, tests and the stored state.
[[nodiscard]] std::string_view to_string(IncidentPhase phase);
[[nodiscard]] std::string_view to_string(IncidentEvent event);
[[nodiscard]] std::string_view to_string(IncidentThen then);

}  // namespace dhc
