#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/eviction/charging.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/replacement.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What must be so before a pod is evicted.
struct GateText {
  std::string_view name;
  std::string_view passes;  ///< When a pod passes, in one sentence.
};

/// A pod on its way through the gates, alone or with the other holders of a shared claim.
struct Candidate {
  const AffectedPod& affected;
  Unit unit;
  std::optional<HoldReason> no_unit = {};   ///< Why the holders of the claim cannot go together.
  std::optional<HoldReason> no_place = {};  ///< That no place for them is known.
  std::optional<HoldReason> unshown = {};   ///< That the condition of one of them, or of a sibling, is not seen yet.
  std::vector<HoldReason> remarks = {};     ///< Said of the pod whether it passes or not.
  std::optional<MonoTime> wake_at = {};
};

/// That a gate holds, and whom.
struct Held {
  HoldReason hold;
  std::string_view gate;    ///< Its name.
  bool whole_unit = false;  ///< All who would go together; else the pod that was asked for.
};

/// All gates for one turn. Who has passed has taken its share of the turn's limits, caps and places.
class Gates {
 public:
  Gates(const PlanInput& input, PlaceSearch& search);

  /// What each gate asks, in the order in which they are asked. `docs/verdicts.md` shows the same list.
  [[nodiscard]] static std::vector<GateText> texts();

  /// The first gate that holds the candidate, which is its verdict; none: its unit is evicted now.
  [[nodiscard]] std::optional<Held> ask(Candidate& candidate);

  /// The pod goes in this turn.
  void note_chosen(const std::string& uid) { chosen_.insert(uid); }

  /// What is to be recorded against the caps first.
  [[nodiscard]] std::vector<EvictionCharge>& charges() { return charging_.charges(); }

 private:
  using Asks = std::optional<HoldReason> (Gates::*)(Candidate&);
  struct Gate {
    GateText text;
    Asks asks;
    bool whole_unit = false;
  };
  static std::span<const Gate> in_order();

  std::optional<HoldReason> is_going(Candidate& candidate);
  std::optional<HoldReason> is_excluded(Candidate& candidate);
  std::optional<HoldReason> looks_for_a_place(Candidate& candidate);
  std::optional<HoldReason> is_too_early(Candidate& candidate);
  std::optional<HoldReason> is_torn(Candidate& candidate);
  template <std::optional<HoldReason> (*kWaits)(const AffectedPod&, const PlanInput&)>
  std::optional<HoldReason> waits(Candidate& candidate);
  std::optional<HoldReason> waits_for_siblings(Candidate& candidate);
  std::optional<HoldReason> waits_for_holders(Candidate& candidate);
  std::optional<HoldReason> ends_a_job(Candidate& candidate);
  std::optional<HoldReason> has_notice(Candidate& candidate);
  std::optional<HoldReason> only_observes(Candidate& candidate);
  std::optional<HoldReason> backs_off(Candidate& candidate);
  std::optional<HoldReason> is_paused(Candidate& candidate);
  std::optional<HoldReason> sees_too_little(Candidate& candidate);
  std::optional<HoldReason> is_braked(Candidate& candidate);
  std::optional<HoldReason> has_no_place(Candidate& candidate);
  std::optional<HoldReason> is_over_cap(Candidate& candidate);
  std::optional<HoldReason> is_over_limit(Candidate& candidate);
  std::optional<HoldReason> knows_old_owner(Candidate& candidate);
  std::optional<HoldReason> has_no_record(Candidate& candidate);
  std::optional<HoldReason> waits_for_condition(Candidate& candidate);
  std::optional<HoldReason> is_not_charged(Candidate& candidate);

  /// Of the pod's Job: asked for each pod, found once a turn.
  struct Family {
    std::vector<const AffectedPod*> affected_pods;
    std::optional<Followers> followers;
  };
  [[nodiscard]] const Followers& followers_of_job(const AffectedPod& affected);
  [[nodiscard]] std::optional<HoldReason> blocks_unit(const AffectedPod& member) const;
  [[nodiscard]] bool waits_for_place(const Candidate& candidate) const;
  [[nodiscard]] bool was_begun(const Unit& unit) const;
  [[nodiscard]] std::int64_t uncounted(const Unit& unit) const;

  const PlanInput& input_;
  Budget budget_;
  Caps caps_;
  ReplacementGate replacement_;
  Charging charging_;
  std::map<std::string, Family> families_;  // by the Job's identity
  const Followers nobody_;
  std::set<std::string> chosen_;
};

}  // namespace dhc::eviction
