#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/demand.h"
#include "reconcilers/eviction/charging.h"
#include "reconcilers/eviction/gang_gate.h"
#include "reconcilers/eviction/limits.h"
#include "reconcilers/eviction/replacement.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/leaving_pods.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::eviction {

/// What must be so before a pod is evicted.
struct GateText {
  std::string_view name;
  std::string_view passes;  ///< When a pod passes, in one sentence.
};

/// What the answer to a pod rests on that changes although nothing of the pod, its device, node and owner does.
struct Rests {
  bool on_limits = false;          ///< Caps, limits, and how many evictions are recorded.
  std::optional<Demand> on_place;  ///< A place for this.
  bool on_own_node = false;        ///< The place is on the pod's own node.
  bool takes = false;              ///< It has taken its share of the limits.
  friend bool operator==(const Rests&, const Rests&) = default;
};

/// Answers that everybody gets who asks, by question: what rests on limits or places stands while they are the same.
struct CommonAnswers {
  std::map<std::string, std::string> limits;
  std::map<Demand, std::string> places;
  std::map<std::string, std::string> taken;  ///< On nodes, by what comes.
  std::string waiting;                       ///< For something that is given back.
  friend bool operator==(const CommonAnswers&, const CommonAnswers&) = default;
};

/// What is asked of all who rest on it.
struct CommonQuestions {
  std::set<std::string> scopes;  ///< Drivers and resources.
  std::set<Demand> places;
};

/// A pod on its way through the gates, alone, with the other holders of a shared claim, or with its gang.
struct Candidate {
  const AffectedPod& affected;
  Unit unit;
  const GangUnit* gang = nullptr;           ///< That goes together; null: there is none.
  std::optional<HoldReason> no_unit = {};   ///< Why the holders of the claim cannot go together.
  std::optional<HoldReason> no_place = {};  ///< That no place for them is known.
  std::optional<HoldReason> unshown = {};   ///< That the condition of one of them, or of a sibling, is not seen yet.
  std::vector<HoldReason> remarks = {};     ///< Said of the pod whether it passes or not.
  std::optional<MonoTime> wake_at = {};
  Rests rests = {};
  bool fits = false;   ///< It is within the limits.
  bool again = false;  ///< It is to be asked about by the next plan, whatever happens.
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

  /// The gang with which the pod goes; null: none.
  [[nodiscard]] const GangUnit* gang_of(const AffectedPod& affected) { return gangs_.of(affected); }

  /// Gangs of which some pods have gone.
  [[nodiscard]] const HalfGangs& half_gangs() const { return half_gangs_; }
  [[nodiscard]] Gangs& gangs() { return gangs_; }

  /// The first gate that holds the candidate, which is its verdict; none: its unit is evicted now.
  [[nodiscard]] std::optional<Held> ask(Candidate& candidate);

  /// What everybody is answered now.
  [[nodiscard]] CommonAnswers answers(const CommonQuestions& questions);

  /// The pod goes in this turn.
  void note_chosen(const std::string& uid) { chosen_.insert(uid); }
  /// The pods that go by this plan.
  [[nodiscard]] LeavingPods& chosen() { return chosen_; }
  /// It follows others of its gang in this turn, past the limits: what it takes of them is not there for others.
  void note_following(const AffectedPod& member) {
    note_chosen(member.pod().meta.uid);
    budget_.take({.affected_pods = {&member}});
  }
  /// A gang is begun in this turn, with one of its pods.
  void note_begun(const std::string& gang, const std::string& pod) { begun_.try_emplace(gang, pod); }

  /// What is to be recorded against the caps first.
  [[nodiscard]] std::vector<EvictionCharge>& charges() { return charging_.charges(); }

 private:
  using Asks = std::optional<HoldReason> (Gates::*)(Candidate&);
  struct Gate {
    GateText text;
    Asks asks;
    bool whole_unit = false;
    bool is_shared = false;  ///< It answers by what all who ask have in common, or take from each other.
    bool asks_caps = false;  ///< Whom it holds, it may hold otherwise once others have taken from the caps.
  };
  static std::span<const Gate> in_order();

  std::optional<HoldReason> is_going(Candidate& candidate);
  std::optional<HoldReason> is_excluded(Candidate& candidate);
  std::optional<HoldReason> looks_for_a_place(Candidate& candidate);
  std::optional<HoldReason> is_held_with_gang(Candidate& candidate);
  std::optional<HoldReason> is_too_early(Candidate& candidate);
  std::optional<HoldReason> is_torn(Candidate& candidate);
  template <std::optional<HoldReason> (*kWaits)(const AffectedPod&, const PlanInput&)>
  std::optional<HoldReason> waits(Candidate& candidate);
  std::optional<HoldReason> waits_for_siblings(Candidate& candidate);
  std::optional<HoldReason> waits_for_holders(Candidate& candidate);
  std::optional<HoldReason> ends_a_job(Candidate& candidate);
  std::optional<HoldReason> has_notice(Candidate& candidate);
  std::optional<HoldReason> is_over_budget(Candidate& candidate);
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
  void join_gang(Candidate& candidate) const;
  [[nodiscard]] std::optional<HoldReason> blocks_unit(const AffectedPod& member, const Candidate& candidate) const;
  [[nodiscard]] bool is_common(const HoldReason& hold, const std::string& scope);
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
  LeavingPods chosen_;
  Gangs gangs_;
  HalfGangs half_gangs_;
  std::map<std::string, std::string> begun_;  // gangs in this turn, and with which pod
};

}  // namespace dhc::eviction
