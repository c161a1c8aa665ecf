#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/moment.h"
#include "domain/contract/signal_source.h"
#include "domain/history/evidence.h"
#include "domain/history/incident_table.h"
#include "k8s-client/model/meta.h"

namespace dhc {

/// How an operator has acknowledged an incident.
enum class Acknowledged : std::uint8_t {
  No,
  Removed,    ///< By removing our rule or taint.
  Changed,    ///< By changing it: it is left as it is.
  Annotated,  ///< By the annotation `device-health.io/acknowledge`.
};

/// The driver's own taint on the device, as an incident has seen it.
struct DriverTaint {
  std::optional<WallTime> gone_at = {};  ///< When it was gone again; none: it stands.
  friend bool operator==(const DriverTaint&, const DriverTaint&) = default;
};

/// Who reports on the device, and whether it is still the one that has called it bad.
struct ReporterSeen {
  std::string name;                        ///< Which driver or plugin began after that, in words.
  std::optional<WallTime> began_at = {};   ///< And when; none: none did.
  std::optional<WallTime> start = {};      ///< `Reporter::newest` of who reported on it when it was called bad.
  std::string boot_id;                     ///< Of its node then.
  std::optional<WallTime> booted_at = {};  ///< When another boot of the node was seen after that.
  bool informed = false;                   ///< A pod was seen that its plugin asks, since it was called bad.
  bool is_known = false;                   ///< Its pod is seen. Of this process alone.
  friend bool operator==(const ReporterSeen&, const ReporterSeen&) = default;
};

/// What is known of an incident while it goes on.
struct IncidentFacts {
  WallTime since;                                ///< Since when the device has been in the state that opened it.
  WallTime opened_at;                            ///< When it opened.
  std::optional<WallTime> first_opened_at = {};  ///< As that was before a clock was set back; none: it was not.
  SignalSource source = SignalSource::Report;    ///< What says that it is bad.
  k8s::Taint taint = {};  ///< The driver's own that a policy has named in it. Without a key: none. Without an effect:
                          ///< an earlier release has written down the key alone.
  std::optional<DriverTaint> driver_taint = {};
  WallTime called_bad_at;                          ///< When it was last called bad anew.
  std::optional<WallTime> called_healthy_at = {};  ///< When Healthy was first believed after that.
  ReporterSeen reporter;
  IncidentEvidence evidence;
  std::optional<WallTime> absent_since = {};  ///< Since when nobody publishes or holds the device.
  bool was_tainted = false;                   ///< Our rule or taint has been seen in it.
};

/// When it opened, as its name says: another time would be another incident.
[[nodiscard]] inline WallTime named_at(const IncidentFacts& facts) {
  return facts.first_opened_at.value_or(facts.opened_at);
}

/// How an incident ended.
struct IncidentEnd {
  WallTime at;
  std::string why;
  bool was_tainted = false;                      ///< As `IncidentFacts` says.
  Acknowledged acknowledged = Acknowledged::No;  ///< As it was then.
  std::optional<WallTime> opened_at = {};        ///< Its `named_at`; none: not known.
};

/// What a device on probation has been tried with.
struct Trial {
  bool is_unproven = false;  ///< The hold alone has ended the incident, and no pod has worked on the device since.
  // of this process alone
  std::optional<MonoTime> used_since = {};  ///< Since when pods hold it and nobody calls it bad.
  friend bool operator==(const Trial&, const Trial&) = default;
};

/// The incident of one device: a phase of the table, with what is known in it.
class Incident {
 public:
  Incident() = default;
  /// As they are remembered.
  [[nodiscard]] static Incident going_on(IncidentFacts facts, bool is_lemon, Acknowledged acknowledged);
  [[nodiscard]] static Incident over(IncidentEnd end, std::optional<WallTime> probation_until,
                                     bool is_unproven = false);

  [[nodiscard]] IncidentPhase phase() const { return static_cast<IncidentPhase>(state_.index()); }
  [[nodiscard]] bool is_open() const { return dhc::is_open(phase()); }
  /// Of an incident that goes on, else null.
  [[nodiscard]] const IncidentFacts* facts() const;
  [[nodiscard]] IncidentFacts* facts();
  /// Of one that is over, while that is remembered, else null.
  [[nodiscard]] const IncidentEnd* end() const;
  [[nodiscard]] IncidentEnd* end();
  [[nodiscard]] std::optional<WallTime> probation_until() const;
  /// Of one on probation, else null.
  [[nodiscard]] const Trial* trial() const;
  [[nodiscard]] Trial* trial();
  /// Of the incident that goes on or was the last one.
  [[nodiscard]] Acknowledged acknowledged() const;
  [[nodiscard]] bool is_acknowledged() const { return acknowledged() != Acknowledged::No; }
  [[nodiscard]] bool was_tainted() const;

  /// Began, or BeganAsLemon.
  IncidentStep begin(IncidentFacts facts, bool is_lemon);
  IncidentStep vouch(Acknowledged how);
  IncidentStep recover(WallTime at, std::string why);
  /// `is_unproven`: as `Trial` says.
  IncidentStep hold_out(WallTime at, std::string why, WallTime probation_until, bool is_unproven);
  IncidentStep excuse(WallTime at, std::string why, WallTime probation_until);
  /// `was_tainted`: what stands there of ours was made for the one before.
  IncidentStep replace(WallTime at, std::string why, bool was_tainted);
  /// ProbationOver, Departed or PastDeleted.
  IncidentStep take(IncidentEvent event);
  /// For a wall clock that was once ahead; true if the end was later.
  bool end_probation_by(WallTime latest);

 private:
  IncidentStep put_on_probation(IncidentEvent event, WallTime at, std::string why, WallTime probation_until,
                                bool is_unproven);
  struct None {};
  struct Open {
    IncidentFacts facts;
  };
  struct Quarantined {
    IncidentFacts facts;
  };
  struct Vouched {
    IncidentFacts facts;
    Acknowledged how;
  };
  struct OnProbation {
    IncidentEnd end;
    WallTime until;
    Trial trial = {};
  };
  struct Over {
    IncidentEnd end;
  };
  template <class State>
  static auto facts_in(State& state) -> decltype(&std::get<Open>(state).facts);
  template <class State>
  static auto end_in(State& state) -> decltype(&std::get<Over>(state).end);
  [[nodiscard]] IncidentEnd end_of(WallTime at, std::string why) const;
  void go_on(IncidentPhase phase, IncidentFacts facts, Acknowledged how = Acknowledged::No);

  std::variant<None, Open, Quarantined, Vouched, OnProbation, Over> state_;  // in the order of IncidentPhase
};

}  // namespace dhc
