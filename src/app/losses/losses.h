#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/losses/device_seconds.h"
#include "app/losses/forecasts.h"
#include "app/losses/predictions.h"
#include "app/losses/step_times.h"
#include "app/message.h"
#include "domain/cluster/focus.h"
#include "domain/incidents/incident_store.h"
#include "reconcilers/hand_over/plan.h"

namespace dhc {

/// What bad devices have cost since this process began, as far as it led.
struct LossFigures {
  LostTime lost{};
  std::array<std::int64_t, kLossCauses.size()> lost_now{};  ///< Devices.
  std::array<std::int64_t, kSpans.size()> measured{};       ///< How many times.
  std::int64_t retries_credited = 0;
  CountByPolicy would_evict;
  DeedCounts would_do;
  PredictionEnds ends;
  friend bool operator==(const LossFigures&, const LossFigures&) = default;
};

/// Watches what the controller finds and does, for the figures. Of a leader: who stands by counts nothing.
class Losses {
 public:
  /// A term begins or ends: what goes on then is another process's, or was.
  void turn_over(const Now& now);

  /// Adds the time that has passed to what was lost: before each plan.
  void advance(const Now& now) { seconds_.advance(now.mono); }

  /// What a turn has found and decided of the devices in its focus; `opened`: their incidents have opened in it.
  void look(const World& world, const IncidentStore& incidents, const std::set<DeviceKey>& opened, const Focus& focus,
            const std::map<DeviceKey, std::vector<Verdict>>& decided, const hand_over::Plan& handed, const Now& now);

  /// An action is handed out, and its answer.
  void sent(const Action& action, const World& world, const IncidentStore& incidents, const Now& now);
  void answered(const Outcome& outcome, const World& world, const IncidentStore& incidents, const Now& now);

  [[nodiscard]] LossFigures figures() const;
  /// What was measured since the last call.
  [[nodiscard]] std::vector<Measured> take_measured() { return times_.take(); }

 private:
  struct Sent {
    std::string owner;
    WallTime bad_since;
    WallTime at;
  };
  void look_at_devices(const World& world, const IncidentStore& incidents, const Focus& focus);
  void look_at_nodes(const World& world, const IncidentStore& incidents, const std::set<DeviceKey>& opened,
                     const Now& now);
  void look_for_replacements(const World& world, const Focus& focus, const Now& now);

  DeviceSeconds seconds_;
  StepTimes times_;
  Predictions predictions_;
  Forecasts forecasts_;
  std::int64_t retries_credited_ = 0;
  bool is_first_ = true;                     // no turn of this term has been looked at
  std::set<std::string> just_evicted_;       // owners, since the last look
  std::map<std::string, Sent> evictions_;    // on their way, by pod UID
  std::map<std::string, WallTime> notices_;  // the first condition on a pod, likewise: bad since
};

}  // namespace dhc
