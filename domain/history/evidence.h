#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/moment.h"

namespace dhc {

/// What is heard of a device while its incident goes on.
enum class EvidencePhase : std::uint8_t {
  Bad,         ///< Somebody reports it bad, or nobody can tell; no Healthy since the incident began.
  Quiet,       ///< Nobody reports it bad: the hold runs.
  Well,        ///< A living source calls it Healthy: `healthyFor` runs, and the hold.
  Relapsed,    ///< It was Well, and is so no more: the next time that a policy means it may be another incident.
  QuietAgain,  ///< It was Well, and nobody says anything now: the hold runs.
};
inline constexpr std::array<EvidencePhase, 5> kEvidencePhases = {
    EvidencePhase::Bad, EvidencePhase::Quiet, EvidencePhase::Well, EvidencePhase::Relapsed, EvidencePhase::QuietAgain};

/// What one turn shows.
enum class EvidenceEvent : std::uint8_t {
  CalledBad,      ///< Bad, or Unknown where it was bad before.
  Silent,         ///< Nobody calls it bad, and no Healthy is to be believed.
  CalledHealthy,  ///< Healthy, by a source that is believed.
  TakenBack,      ///< An earlier Healthy counts no more: the same incident goes on, or its reporter had forgotten it.
};
inline constexpr std::array<EvidenceEvent, 4> kEvidenceEvents = {
    EvidenceEvent::CalledBad, EvidenceEvent::Silent, EvidenceEvent::CalledHealthy, EvidenceEvent::TakenBack};

/// Every phase, every event.
[[nodiscard]] EvidencePhase next_of(EvidencePhase phase, EvidenceEvent event);

[[nodiscard]] std::string_view to_string(EvidencePhase phase);
[[nodiscard]] std::string_view to_string(EvidenceEvent event);

/// The phase with what is known in it.
class IncidentEvidence {
 public:
  IncidentEvidence() = default;
  /// As it is remembered: quiet since then, or bad.
  explicit IncidentEvidence(std::optional<WallTime> quiet_since);

  [[nodiscard]] EvidencePhase phase() const;
  /// Since when nobody has reported the device bad; the hold counts from here.
  [[nodiscard]] std::optional<WallTime> quiet_since() const;
  /// Since when a living source has called it Healthy without interruption.
  [[nodiscard]] std::optional<Moment> healthy_since() const;
  /// Whether it was Healthy since the incident began: the next beginning may be another incident.
  [[nodiscard]] bool was_well() const;

  void take(EvidenceEvent event, const Now& now);
  /// Moves the time since which it is quiet; says nothing where it is not.
  void be_quiet_since(WallTime since);

  friend bool operator==(const IncidentEvidence&, const IncidentEvidence&) = default;

 private:
  struct Bad {
    friend bool operator==(const Bad&, const Bad&) = default;
  };
  struct Quiet {
    WallTime since;
    friend bool operator==(const Quiet&, const Quiet&) = default;
  };
  struct Well {
    WallTime quiet_since;
    Moment healthy_since;
    friend bool operator==(const Well&, const Well&) = default;
  };
  struct Relapsed {
    friend bool operator==(const Relapsed&, const Relapsed&) = default;
  };
  struct QuietAgain {
    WallTime since;
    friend bool operator==(const QuietAgain&, const QuietAgain&) = default;
  };
  std::variant<Bad, Quiet, Well, Relapsed, QuietAgain> state_;  // in the order of EvidencePhase
};

}  // namespace dhc
